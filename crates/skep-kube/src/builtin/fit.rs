//! Whether a value can be read as what its definition says. The real server decodes bodies into structs and refuses what
//! does not fit before it looks at anything else; the words are those of Go's decoder.

use serde_json::Value;

use super::Quantity;
use super::facts::{self, Is};
use crate::decode::UnusualNumbers;
use crate::go_text::{illegal_base64, type_name};
use crate::go_time::{self, Layout};
use crate::schema::path;

/// What a decoder says about a value that does not fit a definition (`io.k8s.api.core.v1.Pod`). The numbers are those
/// of the document that the value was read from.
pub fn misfit(definition: &str, value: &Value, numbers: &UnusualNumbers) -> Option<String> {
    let mut decoder = Decoder { numbers, holder: None, fields: Vec::new(), first: None };
    // A value that must read itself, such as a time, ends the decoding when it cannot. One of the wrong type is only
    // remembered.
    let structure = facts::structure(definition)?;
    decoder.value(Of::new(&structure), value, "").err().or(decoder.first)
}

/// The type of a place, and what Go calls it where it has a name of its own.
#[derive(Clone, Copy)]
struct Of<'a> {
    is: &'a Is,
    go: Option<&'a str>,
}

impl<'a> Of<'a> {
    const fn new(is: &'a Is) -> Self {
        Self { is, go: None }
    }

    /// The type of the items of a list, or of the values of a map.
    fn inner(self, is: &'a Is) -> Self {
        let name = self.go.and_then(|name| name.strip_prefix("[]").or_else(|| name.split_once(']').map(|(_, of)| of)));
        Self { is, go: name }
    }

    fn name(self) -> String {
        if let Some(name) = self.go {
            return name.to_owned();
        }
        match self.is {
            Is::String | Is::Time | Is::MicroTime => "string".to_owned(),
            Is::Bytes => "[]uint8".to_owned(),
            Is::Integer | Is::IntOrString => "int32".to_owned(),
            Is::Long => "int64".to_owned(),
            Is::Number => "float64".to_owned(),
            Is::Boolean => "bool".to_owned(),
            Is::Quantity => "resource.Quantity".to_owned(),
            // `core.v1.Pod` is `v1.Pod`.
            Is::Struct(definition) => definition.split_once('.').map_or(*definition, |(_, name)| name).to_owned(),
            Is::List(item) => format!("[]{}", Of::new(item).name()),
            Is::Map(of) => format!("map[string]{}", Of::new(of).name()),
            Is::Raw => "interface {}".to_owned(),
        }
    }
}

struct Decoder<'a> {
    numbers: &'a UnusualNumbers,
    /// The struct that is being read.
    holder: Option<&'static str>,
    /// The names on the way from the root. The entries of lists and maps have none.
    fields: Vec<&'static str>,
    /// The first value of a wrong type.
    first: Option<String>,
}

impl Decoder<'_> {
    fn value(&mut self, of: Of<'_>, value: &Value, at: &str) -> Result<(), String> {
        match (of.is, value) {
            // An absent value and a null are the same.
            (_, Value::Null)
            | (Is::Raw, _)
            | (Is::String | Is::IntOrString, Value::String(_))
            | (Is::Boolean, Value::Bool(_))
            | (Is::Number, Value::Number(_)) => Ok(()),
            (Is::Struct(definition), Value::Object(members)) => {
                let Some(facts) = facts::definition(definition) else { return Ok(()) };
                let outer = self.holder.replace(definition.rsplit('.').next().unwrap_or_default());
                for (name, member) in members {
                    let Some((name, facts)) = facts.members.get_key_value(name.as_str()) else { continue };
                    let depth = self.fields.len();
                    self.fields.extend(facts.inline.into_iter().chain([*name]));
                    self.value(Of { is: &facts.is, go: facts.go }, member, &path::member(at, name))?;
                    self.fields.truncate(depth);
                }
                self.holder = outer;
                Ok(())
            }
            (Is::List(item), Value::Array(items)) => items
                .iter()
                .enumerate()
                .try_for_each(|(index, value)| self.value(of.inner(item), value, &path::item(at, index))),
            (Is::Map(inner), Value::Object(members)) => {
                members.iter().try_for_each(|(name, value)| self.value(of.inner(inner), value, &path::member(at, name)))
            }
            (Is::Integer | Is::Long, Value::Number(_)) => {
                if let Some(found) = self.not_an_integer(of.is, value, at) {
                    self.remember(&found, of);
                }
                Ok(())
            }
            (Is::IntOrString, Value::Number(_)) => match self.not_an_integer(of.is, value, at) {
                Some(found) => Err(self.complaint(&found, of)),
                None => Ok(()),
            },
            (Is::Bytes, Value::String(text)) => {
                if let Some(byte) = illegal_base64(text) {
                    self.first.get_or_insert_with(|| format!("illegal base64 data at input byte {byte}"));
                }
                Ok(())
            }
            (Is::Time, Value::String(text)) => go_time::complaint(text, Layout::Seconds).map_or(Ok(()), Err),
            (Is::MicroTime, Value::String(text)) => go_time::complaint(text, Layout::Micros).map_or(Ok(()), Err),
            (Is::Quantity, value) => {
                let text = value.as_str().map_or_else(|| value.to_string(), |text| text.trim().to_owned());
                Quantity::read(&text).map(drop).map_err(|error| error.to_string())
            }
            (Is::Time | Is::MicroTime | Is::IntOrString, other) => Err(self.complaint(type_name(other), of)),
            (_, other) => {
                self.remember(type_name(other), of);
                Ok(())
            }
        }
    }

    /// How a number is written that is no integer, or too large a one.
    fn not_an_integer(&self, is: &Is, value: &Value, at: &str) -> Option<String> {
        let fits = match value.as_i64() {
            Some(number) => *is == Is::Long || i32::try_from(number).is_ok(),
            None => false,
        };
        match self.numbers.at(at) {
            Some(written) => Some(format!("number {written}")),
            None => (!fits).then(|| format!("number {value}")),
        }
    }

    fn remember(&mut self, found: &str, of: Of<'_>) {
        if self.first.is_none() {
            self.first = Some(self.complaint(found, of));
        }
    }

    fn complaint(&self, found: &str, of: Of<'_>) -> String {
        let place = match self.holder {
            Some(holder) => format!("struct field {holder}.{}", self.fields.join(".")),
            None => "value".to_owned(),
        };
        format!("json: cannot unmarshal {found} into Go {place} of type {}", of.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode::{Decoded, decode_object};

    fn of(definition: &str, text: &str) -> Option<String> {
        let Decoded { value, numbers, .. } = decode_object(text.as_bytes()).unwrap();
        misfit(definition, &value, &numbers)
    }

    /// Each line was tried on the real server.
    #[test]
    fn what_does_not_fit_is_told_with_its_place() {
        for (spec, holder, field, type_) in [
            (r#""containers":{}"#, "object", "PodSpec.spec.containers", "[]v1.Container"),
            (r#""containers":[5]"#, "number", "PodSpec.spec.containers", "v1.Container"),
            (r#""containers":[{"image":5}]"#, "number", "Container.spec.containers.image", "string"),
            (
                r#""containers":[{"imagePullPolicy":5}]"#,
                "number",
                "Container.spec.containers.imagePullPolicy",
                "v1.PullPolicy",
            ),
            (
                r#""containers":[{"resources":{"limits":[]}}]"#,
                "array",
                "ResourceRequirements.spec.containers.resources.limits",
                "v1.ResourceList",
            ),
            (
                r#""containers":[{"image":5,"livenessProbe":{"httpGet":{"port":1.5}}}]"#,
                "number 1.5",
                "HTTPGetAction.spec.containers.livenessProbe.ProbeHandler.httpGet.port",
                "int32",
            ),
            (r#""containers":[{"command":["x",5]}]"#, "number", "Container.spec.containers.command", "string"),
            (r#""nodeSelector":{"a":{}}"#, "object", "PodSpec.spec.nodeSelector", "string"),
            (r#""nodeSelector":5"#, "number", "PodSpec.spec.nodeSelector", "map[string]string"),
            (
                r#""volumes":[{"configMap":5}]"#,
                "number",
                "Volume.spec.volumes.VolumeSource.configMap",
                "v1.ConfigMapVolumeSource",
            ),
            (
                r#""securityContext":{"fsGroup":1.0}"#,
                "number 1.0",
                "PodSecurityContext.spec.securityContext.fsGroup",
                "int64",
            ),
            (
                r#""activeDeadlineSeconds":9223372036854775808"#,
                "number 9223372036854775808",
                "PodSpec.spec.activeDeadlineSeconds",
                "int64",
            ),
        ] {
            let expected = format!("json: cannot unmarshal {holder} into Go struct field {field} of type {type_}");
            assert_eq!(of("io.k8s.api.core.v1.Pod", &format!("{{\"spec\":{{{spec}}}}}")), Some(expected));
        }
    }

    #[test]
    fn values_that_read_themselves_complain_in_their_own_words() {
        let config_map = "io.k8s.api.core.v1.ConfigMap";
        for (text, complaint) in [
            (r#"{"binaryData":{"x":"YQ="}}"#, "illegal base64 data at input byte 3"),
            (
                r#"{"binaryData":{"x":5}}"#,
                "json: cannot unmarshal number into Go struct field ConfigMap.binaryData of type []uint8",
            ),
            (
                r#"{"metadata":{"labels":{"a":5},"creationTimestamp":5}}"#,
                "json: cannot unmarshal number into Go struct field ObjectMeta.metadata.creationTimestamp of type string",
            ),
        ] {
            assert_eq!(of(config_map, text).as_deref(), Some(complaint));
        }
        let metadata = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
        assert_eq!(of(metadata, "[]").unwrap(), "json: cannot unmarshal array into Go value of type v1.ObjectMeta");
    }

    #[test]
    fn nulls_quantities_ports_and_unknown_members_fit() {
        let pod = r#"{"spec":{"hostname":null,"containers":[{
            "name":"c","resources":{"limits":{"cpu":1.5,"memory":"1Gi"}},"novel":7,
            "livenessProbe":{"httpGet":{"port":"web"}}}]}}"#;
        assert_eq!(of("io.k8s.api.core.v1.Pod", pod), None);
    }
}
