//! Random configurations of the kind in `shapes.json`, the same for the same seed.
//!
//! Few names and few values: managers must meet at the same fields often, with equal and with different values.

use serde_json::{Map, Value, json};

/// A small random number generator (SplitMix64).
#[derive(Debug)]
pub(crate) struct Dice(pub u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    /// True once in so many times.
    pub(crate) fn one_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }

    pub(crate) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[usize::try_from(self.below(from.len() as u64)).unwrap()]
    }

    fn text(&mut self) -> Value {
        self.pick(&["x", "y"]).into()
    }

    /// Some of the names, in some order.
    fn some<T: Copy>(&mut self, from: &[T]) -> Vec<T> {
        let mut rest = from.to_vec();
        let mut chosen = Vec::new();
        while !rest.is_empty() {
            let one = rest.remove(usize::try_from(self.below(rest.len() as u64)).unwrap());
            if self.one_in(2) {
                chosen.push(one);
            }
        }
        chosen
    }

    fn map(&mut self, names: &[&str], mut value: impl FnMut(&mut Self) -> Value) -> Value {
        let names = self.some(names);
        Value::Object(names.into_iter().map(|name| (name.to_owned(), value(self))).collect())
    }

    pub(crate) fn spec(&mut self) -> Value {
        const FIELDS: [&str; 19] = [
            "text",
            "number",
            "flag",
            "maybe",
            "either",
            "inner",
            "labels",
            "groups",
            "nested",
            "byName",
            "ports",
            "numbers",
            "names",
            "items",
            "objects",
            "atomicMap",
            "atomicStruct",
            "free",
            "half",
        ];
        // Mostly a few fields, so that lists meet lists.
        let mut spec = Map::new();
        for _ in 0..=self.below(7) {
            let field = self.pick(&FIELDS);
            spec.insert(field.to_owned(), self.field(field));
        }
        if self.one_in(6) {
            spec.insert("any".to_owned(), self.free(3));
        }
        if self.one_in(8) {
            spec.insert("embedded".to_owned(), self.embedded());
        }
        Value::Object(spec)
    }

    fn field(&mut self, name: &str) -> Value {
        match name {
            "number" => self.below(3).into(),
            "flag" => self.one_in(2).into(),
            "maybe" => {
                if self.one_in(2) {
                    Value::Null
                } else {
                    self.text()
                }
            }
            "either" => {
                if self.one_in(2) {
                    json!(1)
                } else {
                    self.text()
                }
            }
            "inner" => {
                let mut inner = self.map(&["a", "b"], Self::text);
                if self.one_in(2) {
                    inner["deep"] = self.map(&["c"], Self::text);
                }
                inner
            }
            "labels" | "atomicMap" => self.map(&["a", "b", "c"], Self::text),
            "groups" => self.map(&["g", "h"], |dice| dice.map(&["x", "y"], Self::text)),
            "nested" => self.map(&["g", "h"], |dice| dice.map(&["x", "y"], Self::text)),
            "atomicStruct" => self.map(&["a", "b"], Self::text),
            "byName" => self.some(&["a", "b", "c", "d", "e"]).into_iter().map(|name| self.named(name)).collect(),
            "ports" => {
                let ports = [(80, None), (80, Some("UDP")), (443, Some("TCP")), (9, None)];
                self.some(&ports).into_iter().map(|(port, protocol)| self.port(port, protocol)).collect()
            }
            "numbers" => self.some(&[1, 2, 10, 20]).into_iter().map(Value::from).collect(),
            "names" => self.some(&["a", "b", "c", "d", "e"]).into_iter().map(Value::from).collect(),
            "items" => self.some(&["a", "b"]).into_iter().map(Value::from).collect(),
            "objects" => (0..self.below(3)).map(|_| self.map(&["a", "b"], Self::text)).collect(),
            "free" => self.map(&["p", "q", "r"], |dice| dice.free(3)),
            "half" => {
                let mut half = self.map(&["other"], |dice| dice.free(2));
                if self.one_in(2) {
                    half["known"] = self.text();
                }
                if self.one_in(2) {
                    half["list"] = self.some(&["a", "b", "c"]).into_iter().map(Value::from).collect();
                }
                half
            }
            _ => self.text(),
        }
    }

    fn named(&mut self, name: &str) -> Value {
        let mut item = json!({ "name": name });
        if self.one_in(2) {
            item["value"] = self.text();
        }
        if self.one_in(3) {
            item["tags"] = self.some(&["s", "t"]).into_iter().map(Value::from).collect();
        }
        if self.one_in(3) {
            item["inner"] = self.map(&["a"], Self::text);
        }
        item
    }

    fn port(&mut self, port: u16, protocol: Option<&str>) -> Value {
        let mut item = json!({ "port": port });
        if let Some(protocol) = protocol {
            item["protocol"] = protocol.into();
        }
        if self.one_in(2) {
            item["name"] = self.text();
        }
        item
    }

    fn free(&mut self, depth: u64) -> Value {
        match self.below(if depth == 0 { 4 } else { 8 }) {
            0 => Value::Null,
            1 => self.below(2).into(),
            2 => self.text(),
            3 => self.some(&[1, 2]).into_iter().map(Value::from).collect(),
            4 => json!([{ "a": self.below(2) }]),
            _ => self.map(&["p", "q"], |dice| dice.free(depth - 1)),
        }
    }

    fn embedded(&mut self) -> Value {
        json!({
            "apiVersion": "v1",
            "kind": "Thing",
            "metadata": { "name": self.text(), "labels": self.map(&["a", "b"], Self::text) },
            "body": self.free(2),
        })
    }

    pub(crate) fn metadata(&mut self) -> Map<String, Value> {
        let mut metadata = Map::new();
        if self.one_in(3) {
            metadata.insert("labels".to_owned(), self.map(&["a", "b"], Self::text));
        }
        if self.one_in(3) {
            metadata.insert("annotations".to_owned(), self.map(&["a.b/c", "d"], Self::text));
        }
        metadata
    }

    pub(crate) fn status(&mut self) -> Value {
        let mut status = self.map(&["phase"], Self::text);
        if self.one_in(2) {
            let types = self.some(&["A", "B"]);
            status["conditions"] =
                types.into_iter().map(|type_| json!({ "type": type_, "status": self.text() })).collect();
        }
        status
    }
}
