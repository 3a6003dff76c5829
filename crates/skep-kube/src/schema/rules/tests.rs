use serde_json::json;

use super::*;

fn rules(schema: &Value) -> (Schema, CompiledRules) {
    let schema = Schema::read(schema);
    let rules = CompiledRules::compile(&schema);
    (schema, rules)
}

fn told(errors: &[FieldError]) -> Vec<String> {
    errors.iter().map(ToString::to_string).collect()
}

#[test]
fn rules_can_be_shared_between_threads() {
    fn shared<T: Send + Sync>() {}
    shared::<CompiledRules>();
}

/// Each line was tried on the real server.
#[test]
fn refusals_are_told_in_the_words_of_the_real_server() {
    let numbers = |rules: Value| {
        json!({ "type": "object", "properties": { "o": { "type": "object", "x-kubernetes-validations": rules,
            "properties": { "a": { "type": "integer" }, "b": { "type": "integer" },
                "arr": { "type": "array", "items": { "type": "string" } },
                "mm": { "type": "object", "additionalProperties": { "type": "string" } } } } } })
    };
    let object = json!({ "o": { "a": 8, "b": 1, "arr": ["a"], "mm": { "re": "(x", "long": "9999999999999999h" } } });
    for (rule, expected) in [
        (json!({ "rule": "self.a < self.b", "message": " trimmed " }), "o: Invalid value: trimmed"),
        (json!({ "rule": "self.a < self.b" }), "o: Invalid value: failed rule: self.a < self.b"),
        (json!({ "rule": "self.a != 8", "reason": "FieldValueForbidden", "message": "no" }), "o: Forbidden: no"),
        (json!({ "rule": "self.a != 8", "reason": "FieldValueRequired", "message": "no" }), "o: Required value: no"),
        (json!({ "rule": "self.a != 8", "reason": "FieldValueDuplicate", "message": "no" }), "o: Duplicate value"),
        (json!({ "rule": "self.a != 8", "fieldPath": ".a", "message": "no" }), "o.a: Invalid value: no"),
        (json!({ "rule": "self.a != 8", "fieldPath": ".mm.k", "message": "no" }), "o.mm[k]: Invalid value: no"),
        (json!({ "rule": "self.a != 8", "fieldPath": ".mm['k.x']", "message": "no" }), "o.mm[k.x]: Invalid value: no"),
        (
            json!({ "rule": "self.arr[3] == 'x'" }),
            "o: Invalid value: \"object\": index out of bounds: 3 evaluating rule: self.arr[3] == 'x'",
        ),
        (
            json!({ "rule": "self.mm['zz'] == 'x'", "message": "some message" }),
            "o: Invalid value: \"object\": no such key: zz evaluating rule: some message",
        ),
        (
            json!({ "rule": "1 / (self.a - 8) == 1", "message": "m" }),
            "o: Invalid value: \"object\": division by zero evaluating rule: m",
        ),
        (
            json!({ "rule": "1 % (self.a - 8) == 1", "message": "m" }),
            "o: Invalid value: \"object\": modulus by zero evaluating rule: m",
        ),
        (
            json!({ "rule": "self.a + 9223372036854775807 > 1", "message": "m" }),
            "o: Invalid value: \"object\": integer overflow evaluating rule: m",
        ),
        (
            json!({ "rule": "duration(self.mm['long']) > duration('1s')", "message": "m" }),
            "o: Invalid value: \"object\": type conversion error from 'string' to 'google.protobuf.Duration' \
             evaluating rule: m",
        ),
        (
            json!({ "rule": "timestamp(self.mm['re']) > timestamp('2026-01-01T00:00:00Z')", "message": "m" }),
            "o: Invalid value: \"object\": type conversion error from 'string' to 'google.protobuf.Timestamp' \
             evaluating rule: m",
        ),
        (
            json!({ "rule": "'a'.matches(self.mm['re'])", "message": "m" }),
            "o: Invalid value: \"object\": error parsing regexp: missing closing ): `(x` evaluating rule: m",
        ),
        (
            json!({ "rule": "int(self.mm['re']) == 1", "message": "m" }),
            "o: Invalid value: \"object\": type conversion error from 'string' to 'int' evaluating rule: m",
        ),
        (
            json!({ "rule": "self.a != 8", "messageExpression": "'line\\nbreak'", "message": "fallback" }),
            "o: Invalid value: fallback",
        ),
        (json!({ "rule": "self.a != 8", "messageExpression": "'a is ' + string(self.a)" }), "o: Invalid value: a is 8"),
    ] {
        let (schema, rules) = rules(&numbers(json!([rule])));
        assert_eq!(told(&rules.check(&schema, &object, None)), [expected], "{rule}");
    }
}

#[test]
fn single_values_are_shown_and_entries_named_by_key() {
    let (schema, rules) = rules(&json!({ "type": "object", "properties": {
        "m": { "type": "object", "additionalProperties": { "type": "string",
            "x-kubernetes-validations": [{ "rule": "self != 'bad'", "message": "bad value" }] } },
        "n": { "type": "number", "x-kubernetes-validations": [{ "rule": "self < 2.0" }] },
        "ios": { "x-kubernetes-int-or-string": true, "x-kubernetes-validations": [
            { "rule": "type(self) == string ? self.endsWith('%') : self > 3" },
            { "rule": "self + 1 > 3", "message": "plus" }] },
        "nu": { "type": "string", "nullable": true, "x-kubernetes-validations": [{ "rule": "self != 'x'" }] },
        "s": { "type": "string", "x-kubernetes-validations": [{ "rule": "size(self) == 2" }] },
    } }));
    let check = |object: Value| told(&rules.check(&schema, &object, None));
    assert_eq!(check(json!({ "m": { "b.c/d": "bad" } })), [r#"m[b.c/d]: Invalid value: "bad": bad value"#]);
    assert_eq!(check(json!({ "n": 3 })), ["n: Invalid value: 3: failed rule: self < 2.0"]);
    assert_eq!(check(json!({ "nu": null, "s": "éé" })), [""; 0]);
    assert_eq!(
        check(json!({ "ios": "5%" })),
        [
            "ios: Invalid value: \"\": 'no such overload': call arguments did not match a supported operator, function or \
          macro signature for rule: plus"
        ]
    );
    assert_eq!(check(json!({ "ios": 5 })), [""; 0]);
}

#[test]
fn rules_about_the_change_see_what_was_before() {
    let (schema, rules) = rules(&json!({ "type": "object", "properties": {
        "imm": { "type": "string", "x-kubernetes-validations": [{ "rule": "self == oldSelf", "message": "immutable" }] },
        "opt": { "type": "string", "x-kubernetes-validations": [{
            "rule": "oldSelf.hasValue() ? oldSelf.value() == self : self == 'x'",
            "message": "opt", "optionalOldSelf": true }] },
        "ml": { "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
            "items": { "type": "object", "properties": { "k": { "type": "string" },
                "v": { "type": "string", "x-kubernetes-validations": [{ "rule": "self == oldSelf" }] } } } },
        "plain": { "type": "string", "x-kubernetes-validations": [{ "rule": "self == 'x'" }] },
        "broken": { "type": "integer", "x-kubernetes-validations": [{ "rule": "1 / (self - self) == 1" }] },
    } }));
    let check = |old: Value, new: Value| told(&rules.check(&schema, &new, Some(&old)));
    assert_eq!(check(json!({ "imm": "a" }), json!({ "imm": "b" })), [r#"imm: Invalid value: "b": immutable"#]);
    assert_eq!(check(json!({ "imm": "a" }), json!({})), [""; 0]);
    assert_eq!(check(json!({}), json!({ "imm": "a" })), [""; 0]);
    assert_eq!(check(json!({ "opt": "x" }), json!({ "opt": "y" })), [r#"opt: Invalid value: "y": opt"#]);
    assert_eq!(check(json!({}), json!({ "opt": "y" })), [r#"opt: Invalid value: "y": opt"#]);
    assert_eq!(
        check(
            json!({ "ml": [{ "k": "a", "v": "1" }, { "k": "b", "v": "2" }] }),
            json!({ "ml": [{ "k": "b", "v": "2" }, { "k": "a", "v": "x" }, { "k": "c", "v": "n" }] })
        ),
        [r#"ml[1].v: Invalid value: "x": failed rule: self == oldSelf"#]
    );
    // Unchanged and wrong is tolerated; unchanged and impossible to tell is not.
    assert_eq!(check(json!({ "plain": "q" }), json!({ "plain": "q" })), [""; 0]);
    assert_eq!(check(json!({ "broken": 1 }), json!({ "broken": 1 })).len(), 1);
}

#[test]
fn a_whole_object_shows_its_name_and_nothing_else_of_its_metadata() {
    let (schema, rules) = rules(&json!({ "type": "object", "properties": { "a-b": { "type": "string" } },
        "x-kubernetes-validations": [
            { "rule": "self.metadata.name != 'forbidden'", "message": "root rule" },
            { "rule": "!has(self.metadata.labels) && !has(self.unknown)" },
            { "rule": "!has(self.a__dash__b) || self.a__dash__b == 'x'", "message": "dash" }] }));
    let object = json!({ "metadata": { "name": "forbidden", "labels": {} }, "unknown": 1, "a-b": "y" });
    assert_eq!(
        told(&rules.check(&schema, &object, None)),
        ["<nil>: Invalid value: root rule", "<nil>: Invalid value: dash"]
    );
}

#[test]
fn rules_that_make_the_interpreter_panic_only_fail() {
    let (schema, rules) = rules(&json!({ "type": "object", "properties": { "s": { "type": "string",
        "x-kubernetes-validations": [{ "rule": "duration(self) + duration(self) > duration('1s')", "message": "m" }] } } }));
    let errors = rules.check(&schema, &json!({ "s": "9223372036854775807ns" }), None);
    assert!(errors.len() <= 1, "{errors:?}");
}

/// Each ends soon, one way or the other.
#[test]
fn a_rule_that_costs_too_much_is_stopped() {
    let limit = "'operation cancelled: actual cost limit exceeded': no further validation rules will be run due to call \
                 cost exceeds limit for rule: m";
    let numbers: Vec<usize> = (0..3000).collect();
    for rule in [
        "self.l.all(x, self.l.all(y, self.l.all(z, x + y + z >= 0)))",
        "self.l.exists(x, self.l.exists(y, x + y < 0)) || self.l.exists(x, self.l.exists(y, x + y < 0)) || true",
        "self.l.map(x, self.l.map(y, x + y)).size() > 0",
        "self.l.filter(x, self.l.exists_one(y, y == x)).size() > 0",
        "self.l.transformMap(i, x, self.l.exists(j, y, x + y < 0)).size() > 0",
        "self.l.distinct().size() > 0",
        "sets.contains(self.l, self.l)",
        "sets.equivalent(self.l, self.l)",
        "lists.range(1000000000000).size() > 0",
        "self.s.replace('', self.s).size() > 0",
        "self.l.map(x, 'a').join(self.s).size() > 0",
    ] {
        let (schema, rules) = rules(&json!({ "type": "object", "properties": {
            "s": { "type": "string" }, "l": { "type": "array", "items": { "type": "integer" } } },
            "x-kubernetes-validations": [{ "rule": rule, "message": "m" }, { "rule": "false", "message": "not asked" }] }));
        let begun = std::time::Instant::now();
        let object = json!({ "l": numbers, "s": "a".repeat(10_000) });
        let errors = told(&rules.check(&schema, &object, None));
        assert!(begun.elapsed() < std::time::Duration::from_secs(15), "{rule} took {:?}", begun.elapsed());
        assert!(
            errors == [format!("<nil>: Invalid value: \"object\": {limit}")]
                || errors[0].contains("running out of cost budget"),
            "{rule}: {errors:?}"
        );
    }
}

#[test]
fn many_rules_that_cost_much_are_too_much_together() {
    let rule = json!({ "rule": "self.all(x, self.all(y, x + y >= 0))", "message": "m" });
    let (schema, rules) = rules(&json!({ "type": "object", "additionalProperties": {
        "type": "array", "items": { "type": "integer" }, "x-kubernetes-validations": [rule] } }));
    let list: Vec<usize> = (0..250).collect();
    let few = json!({ "a": list });
    assert_eq!(told(&rules.check(&schema, &few, None)), [""; 0]);
    let many: serde_json::Map<String, Value> = (0..100).map(|name| (name.to_string(), json!(list))).collect();
    let errors = told(&rules.check(&schema, &many.into(), None));
    assert_eq!(errors.len(), 1, "{errors:?}");
    assert!(errors[0].contains("running out of cost budget"), "{errors:?}");
}

#[test]
fn functions_that_ask_for_their_cost_do_the_same_as_before() {
    for rule in [
        "[1, 2, 1, 3].distinct() == [1, 2, 3]",
        "sets.contains([1, 2], [2]) && !sets.contains([1], [2]) && sets.equivalent([1, 2, 2], [2, 1])",
        "sets.intersects([1, 2], [2, 3]) && !sets.intersects([1], [2])",
        "lists.range(3) == [0, 1, 2]",
        "['a', 'b'].join() == 'ab' && ['a', 'b'].join('-') == 'a-b'",
        "'aaa'.replace('a', 'b') == 'bbb' && 'aaa'.replace('a', 'b', 2) == 'bba' && 'aa'.replace('a', '', -1) == ''",
    ] {
        let (schema, rules) = rules(&json!({ "type": "object", "x-kubernetes-validations": [{ "rule": rule }] }));
        assert_eq!(told(&rules.check(&schema, &json!({}), None)), [""; 0], "{rule}");
    }
}

/// Expressions that would take more stack than there is are refused before they do.
#[test]
fn no_expression_exhausts_the_stack() {
    let run = || {
        for source in [
            "(".repeat(50_000),
            format!("{}true{}", "(".repeat(60), ")".repeat(60)),
            format!("{}true", "!".repeat(80)),
            "[".repeat(80),
            "true?true:".repeat(80) + "true",
            "!".repeat(50_000),
            "-".repeat(50_000),
            format!("self{}", ".a".repeat(3_000)),
            format!("1{} > 1", "+1".repeat(3_000)),
            format!("1{} > 1", "+1".repeat(150)),
            format!("true{}", " && true".repeat(3_000)),
            format!("true{}", " == true".repeat(3_000)),
            format!("self{}", "[0]".repeat(3_000)),
            format!("self{}", ".all(x, x".repeat(80)),
        ] {
            let schema = Schema::read(&json!({ "type": "object", "x-kubernetes-validations": [{ "rule": source }] }));
            CompiledRules::compile(&schema).check(&schema, &json!({}), None);
            compile_problem(&source, &schema, true, false, "bool");
        }
    };
    std::thread::Builder::new().stack_size(2 << 20).spawn(run).unwrap().join().unwrap();
}

/// What a loop collects is not copied at every turn.
#[test]
fn loops_take_as_long_as_their_lists_are() {
    for rule in ["self.l.map(x, x).size() == 50000", "self.l.transformMap(i, x, x).size() == 50000"] {
        let (schema, rules) = rules(&json!({ "type": "object", "properties": {
            "l": { "type": "array", "items": { "type": "integer" } } },
            "x-kubernetes-validations": [{ "rule": rule }] }));
        let numbers: Vec<usize> = (0..50_000).collect();
        assert_eq!(told(&rules.check(&schema, &json!({ "l": numbers }), None)), [""; 0], "{rule}");
    }
}

/// Each macro is written out once, however many stand in each other.
#[test]
fn macros_in_macros_do_not_grow_without_bounds() {
    let chain = format!("self.?a{}.hasValue()", ".optMap(x, x + 1)".repeat(40));
    let sorts = format!("self.l{}.size() == 0", ".sortBy(x, x)".repeat(40));
    for rule in [chain, sorts] {
        let (schema, rules) = rules(&json!({ "type": "object", "properties": {
            "a": { "type": "integer" }, "l": { "type": "array", "items": { "type": "integer" } } },
            "x-kubernetes-validations": [{ "rule": rule }] }));
        assert_eq!(compile_problem(&rule, &schema, false, false, "bool"), None, "{rule}");
        assert_eq!(told(&rules.check(&schema, &json!({ "a": 1, "l": [] }), None)), [""; 0], "{rule}");
    }
}
