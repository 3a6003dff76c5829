//! Messages that say odd things in odd ways, and how an answer to them comes.

use proptest::prelude::*;
use proptest::sample::select;

/// JSON in one of the many ways in which it can be written.
fn value() -> impl Strategy<Value = String> {
    let number =
        prop_oneof!["-?(0|[1-9][0-9]{0,25})", "-?(0|[1-9][0-9]{0,5})\\.[0-9]{1,5}", "[1-9][eE][+-]?[0-9]{1,2}"];
    let leaf = prop_oneof![Just("null".to_owned()), Just("true".to_owned()), Just("false".to_owned()), number, text(),];
    leaf.prop_recursive(3, 24, 4, |inner| {
        let space = "[ \\t]{0,2}";
        let list = (space, prop::collection::vec(inner.clone(), 0..4))
            .prop_map(|(space, items)| format!("[{space}{}]", items.join(&format!("{space},"))));
        let object = (space, prop::collection::vec((text(), inner), 0..4)).prop_map(|(space, members)| {
            // Each name once.
            let members: std::collections::BTreeMap<String, String> = members
                .into_iter()
                .enumerate()
                .map(|(number, (name, value))| (format!("\"{number}{}", &name[1..]), value))
                .collect();
            let members: Vec<String> =
                members.iter().map(|(name, value)| format!("{name}{space}:{space}{value}")).collect();
            format!("{{{space}{}{space}}}", members.join(","))
        });
        prop_oneof![list, object]
    })
}

/// A string, with letters of many kinds, some of them written as numbers.
fn text() -> impl Strategy<Value = String> {
    let letter = prop_oneof![
        "[a-z0-9 /.=?-]",
        "[äßλ中\u{a0}\u{200d}\u{fffd}🐝]",
        Just("\\u00e9".to_owned()),
        Just("\\n".to_owned()),
        Just("\\\"".to_owned()),
        Just("\\/".to_owned())
    ];
    prop::collection::vec(letter, 0..8).prop_map(|letters| format!("\"{}\"", letters.concat()))
}

/// Everything that an id may be. Numbers may be too large for every type that a language has for them.
fn id() -> impl Strategy<Value = String> {
    prop_oneof![
        "-?(0|[1-9][0-9]{0,18})",
        "-?[1-9][0-9]{19,40}",
        "[1-9][0-9]{0,3}\\.[0-9]{1,3}",
        "-?[1-9](\\.[0-9]{1,3})?[eE][+-]?[0-9]{1,3}",
        text()
    ]
}

/// What is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Call,
    /// A call that reports its progress.
    Progress,
    /// A list of tools, some of which not everybody is shown, or not as they are.
    List,
}

/// How the answer comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Json,
    Events,
}

/// Who sees a list of tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum View {
    /// Whoever gets what the server says.
    Whole,
    /// A client whose requests stand alone, before a server of the same kind.
    Alone,
    /// The same before a server of sessions.
    AloneInSession,
    /// A client of sessions, before a server whose requests stand alone.
    InSession,
    /// Whoever is shown what rules say.
    Ruled,
}

/// What a message says besides what it has to say: a member of its own, one of its parameters, one of `_meta`.
#[derive(Debug, Clone)]
pub(super) struct Odd {
    pub(super) kind: Kind,
    pub(super) form: Form,
    /// What is between some of the values: a line end makes several lines of the data of an event.
    space: &'static str,
    id: String,
    token: String,
    member: String,
    arguments: String,
    meta: String,
    result: String,
}

pub(super) fn odd() -> impl Strategy<Value = Odd> {
    // Progress can only be told in a stream.
    let ways = [
        (Kind::Call, Form::Json),
        (Kind::Call, Form::Events),
        (Kind::Progress, Form::Events),
        (Kind::List, Form::Json),
        (Kind::List, Form::Events),
    ];
    let ways = (select(ways.to_vec()), select(vec![" ", "\n"]));
    (ways, id(), id(), [value(), value(), value(), value()]).prop_map(|(((kind, form), space), id, token, values)| {
        let [member, arguments, meta, result] = values;
        Odd { kind, form, space, id, token, member, arguments, meta, result }
    })
}

impl Odd {
    pub(super) fn method(&self) -> &'static str {
        if self.kind == Kind::List { "tools/list" } else { "tools/call" }
    }

    /// What its client knows it by: the id, and the token for its progress.
    pub(super) fn own(&self) -> [&str; 2] {
        [&self.id, &self.token]
    }

    /// The same on one line.
    pub(super) fn on_one_line(&self) -> Self {
        Self { space: " ", ..self.clone() }
    }

    /// The request under this id and token, about this tool, with these members of `_meta` as well.
    pub(super) fn request(&self, [id, token]: [&str; 2], tool: &str, meta: &str) -> String {
        let Self { space, member, arguments, meta: own, .. } = self;
        let method = self.method();
        let about = match self.kind {
            Kind::List => String::new(),
            Kind::Call | Kind::Progress => format!(r#""name":"{tool}","#),
        };
        let token = match self.kind {
            Kind::Progress => format!(r#","progressToken":{space}{token}"#),
            Kind::Call | Kind::List => String::new(),
        };
        format!(
            r#"{{"jsonrpc":"2.0",{space}"x-odd": {member},"id":{id},"method":"{method}","params":{{{about}"arguments":{{"x":{arguments}}},"_meta":{{"hive/x":{space}{own}{token}{meta}}}}}}}"#
        )
    }

    /// Everything that the server says, with these members of its `_meta` and of the result as well.
    pub(super) fn answers(&self, [id, token]: [&str; 2], view: View, [more_meta, more]: [&str; 2]) -> Vec<String> {
        let Self { space, member, result, meta, .. } = self;
        let content = match self.kind {
            Kind::List => format!(r#""tools":[{}]"#, self.tools(view).join(",")),
            Kind::Call | Kind::Progress => format!(r#""content":[{result}]"#),
        };
        let answer = format!(
            r#"{{"jsonrpc":"2.0","x-odd":{member}{space}, "id":{id},"result":{{{content},{space}"y": {result},"_meta":{{"hive/y":{meta}{more_meta}}}{more}}}}}"#
        );
        self.after_progress(token, answer)
    }

    /// The same, if it fails.
    pub(super) fn errors(&self, [id, token]: [&str; 2]) -> Vec<String> {
        let Self { space, member, result, .. } = self;
        let error = format!(
            r#"{{"jsonrpc":"2.0","error":{{"code":-31000 ,"message":"m",{space}"data":{result}}}, "x-odd":{member},"id":{space}{id}}}"#
        );
        self.after_progress(token, error)
    }

    fn after_progress(&self, token: &str, answer: String) -> Vec<String> {
        let Self { space, member, result, .. } = self;
        let progress = format!(
            r#"{{"jsonrpc":"2.0",{space}"x-odd":{member},"method":"notifications/progress","params":{{"progress":1.50,"progressToken":{token} ,{space}"y":{result}}}}}"#
        );
        if self.kind == Kind::Progress { vec![progress.clone(), progress, answer] } else { vec![answer] }
    }

    /// What a complete result of the newest era says about itself.
    pub(super) fn complete(&self) -> &'static str {
        match self.kind {
            Kind::List => r#","resultType":"complete","ttlMs":0,"cacheScope":"private""#,
            Kind::Call | Kind::Progress => r#","resultType":"complete""#,
        }
    }

    fn tools(&self, view: View) -> Vec<String> {
        let Self { space, result, .. } = self;
        let plain = format!(r#"{{"name":"a",{space}"x-odd":{result},"inputSchema":{{"default":{result}}}}}"#);
        let marked = |mark: &str| {
            format!(
                r#"{{"name":"marked","inputSchema":{{"properties":{{"yard":{{"type":"string"{mark} ,"z":{result}}}}}}}}}"#
            )
        };
        let mark = format!(r#",{space}"x-mcp-header": "Yard""#);
        let badly = r#"{"name":"badly marked","inputSchema":{"items":{"x-mcp-header":"Yard"}}}"#.to_owned();
        let task = |name: &str, more: &str| {
            format!(r#"{{"x":{result},"name": "{name}","execution":{{"taskSupport":"required"}}{more} }}"#)
        };
        let own = task("task", "");
        match view {
            View::Whole => vec![plain, marked(&mark), badly, own],
            View::Alone => vec![plain, marked(&mark), own],
            View::AloneInSession => vec![plain, marked(&mark), badly],
            View::InSession => vec![plain, marked(""), own],
            View::Ruled => vec![plain, marked(&mark), task("shown", r#","description":"d""#)],
        }
    }

    /// The body of a response that says all of this.
    pub(super) fn body(&self, messages: &[String]) -> String {
        match self.form {
            Form::Json => messages.concat(),
            Form::Events => messages.iter().map(|message| event(message)).collect(),
        }
    }
}

/// A message as an event, with as many lines of data as it has lines.
pub(super) fn event(message: &str) -> String {
    format!("id: 4-1\nevent: message\ndata: {}\n\n", message.replace('\n', "\ndata: "))
}
