//! The targets. Each takes any bytes and panics only when the code under test is wrong.

mod apply;
mod bodies;
mod mcp;
mod patch;
mod schema;
mod text;
mod translate;

/// A function that must survive all inputs.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    /// Also the folder of its corpus.
    pub name: &'static str,
    pub run: fn(&[u8]),
}

pub const TARGETS: [Target; 17] = [
    Target { name: "apply", run: apply::apply },
    Target { name: "json_patch", run: patch::json },
    Target { name: "json_path", run: text::json_path },
    Target { name: "managed_fields", run: apply::managed_fields },
    Target { name: "mcp_catalog", run: mcp::catalog },
    Target { name: "mcp_edit", run: mcp::edit },
    Target { name: "mcp_message", run: mcp::message },
    Target { name: "mcp_stream", run: mcp::stream },
    Target { name: "mcp_translate", run: translate::translate },
    Target { name: "merge_patch", run: patch::merge },
    Target { name: "protobuf", run: bodies::protobuf },
    Target { name: "rules", run: schema::rules },
    Target { name: "schema", run: schema::schema },
    Target { name: "selectors", run: text::selectors },
    Target { name: "strategic_patch", run: patch::strategic },
    Target { name: "table", run: text::table },
    Target { name: "yaml", run: bodies::yaml },
];

/// The target with a name.
pub fn find(name: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|target| target.name == name)
}

/// Runs the target with a name on an input, for other drivers than ours.
pub fn run(name: &str, input: &[u8]) {
    if let Some(target) = find(name) {
        (target.run)(input);
    }
}
