//! The priorities of pods: numbers with names.

use serde_json::{Value, json};

/// What users may give; what is above is for the system.
pub const HIGHEST_PRIORITY: i64 = 1_000_000_000;
const DEFAULT_POLICY: &str = "PreemptLowerPriority";

/// A class that is there from the beginning.
#[derive(Debug, Clone, Copy)]
pub struct SystemPriority {
    pub name: &'static str,
    pub value: i64,
    description: &'static str,
}

pub const SYSTEM_PRIORITIES: [SystemPriority; 2] = [
    SystemPriority {
        name: "system-cluster-critical",
        value: 2_000_000_000,
        description: "Used for system critical pods that must run in the cluster, but can be moved to another node if \
                      necessary.",
    },
    SystemPriority {
        name: "system-node-critical",
        value: 2_000_001_000,
        description: "Used for system critical pods that must not be moved from their current node.",
    },
];

impl SystemPriority {
    /// The class as an object.
    pub fn document(&self) -> Value {
        json!({
            "metadata": { "name": self.name, "generation": 1 },
            "value": self.value,
            "description": self.description,
            "preemptionPolicy": DEFAULT_POLICY,
        })
    }
}

/// Gives a new pod the priority of its class, or says why it cannot have it.
pub fn admit_priority(pod: &mut Value, classes: &[Value]) -> Result<(), String> {
    let Some(spec) = pod.get_mut("spec").filter(|spec| spec.is_object()) else { return Ok(()) };
    let wanted = spec["priorityClassName"].as_str().unwrap_or_default().to_owned();
    let value = |class: &Value| class["value"].as_i64().unwrap_or_default();
    let class = if wanted.is_empty() {
        classes.iter().filter(|class| class["globalDefault"] == true).min_by_key(|class| value(class))
    } else {
        let named = classes.iter().find(|class| class["metadata"]["name"] == *wanted);
        Some(named.ok_or_else(|| format!("no PriorityClass with name {wanted} was found"))?)
    };
    if let Some(class) = class {
        spec["priorityClassName"] = class["metadata"]["name"].clone();
    }
    let priority = class.map_or(0, value);
    let policy = class.and_then(|class| class["preemptionPolicy"].as_str()).unwrap_or(DEFAULT_POLICY);
    let computed = "must not be provided in pod spec; priority admission controller computed";
    let origin = "from the given PriorityClass name";
    if let Some(given) = spec["priority"].as_i64().filter(|given| *given != priority) {
        return Err(format!("the integer value of priority ({given}) {computed} {priority} {origin}"));
    }
    if let Some(given) = spec["preemptionPolicy"].as_str().filter(|given| *given != policy) {
        return Err(format!("the string value of PreemptionPolicy ({given}) {computed} {policy} {origin}"));
    }
    spec["priority"] = priority.into();
    spec["preemptionPolicy"] = policy.into();
    Ok(())
}

/// Of all classes one at most is the default.
pub fn check_default_priority(class: &Value, classes: &[Value]) -> Result<(), String> {
    if class["globalDefault"] != true {
        return Ok(());
    }
    let name = &class["metadata"]["name"];
    let other = classes.iter().find(|other| other["globalDefault"] == true && other["metadata"]["name"] != *name);
    other.map_or(Ok(()), |other| {
        let other = other["metadata"]["name"].as_str().unwrap_or_default();
        Err(format!("PriorityClass {other} is already marked as default. Only one default can exist"))
    })
}
