//! Tools that are made of calls to other tools.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::config::document::null_is_empty;
use crate::duration::DurationText;
use crate::kinds::tool_override::ToolAnnotations;
use crate::raw::{RawObject, RawValue};

/// A tool that is made of calls to other tools.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CompositeTool {
    /// What clients are told about the behaviour of the tool. Without it that is derived from the tools it calls; a
    /// hint cannot claim more safety than they have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub annotations: Option<ToolAnnotations>,
    /// What the tool does, for clients and models.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The name of the tool.
    pub name: String,
    /// What the tool answers. Without it, the output of the step that finished last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<CompositeOutput>,
    /// The arguments of the tool as a JSON Schema with `type: object`. Properties with a default are filled in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parameters: Option<RawObject>,
    /// The steps, at most 100. Those that do not depend on each other run at the same time.
    #[serde(deserialize_with = "null_is_empty")]
    pub steps: Vec<WorkflowStep>,
    /// How long all steps together may take. Defaults to 30m.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout: Option<DurationText>,
    /// Members that Skep does not know, kept as they are.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: RawObject,
}

/// What a composite tool answers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CompositeOutput {
    /// The members of the answer.
    #[serde(deserialize_with = "null_is_empty")]
    pub properties: BTreeMap<String, OutputProperty>,
    /// The members that must have a value. When one has none the call fails.
    #[serde(default, deserialize_with = "null_is_empty", skip_serializing_if = "Vec::is_empty")]
    pub required: Vec<String>,
    /// Members that Skep does not know, kept as they are.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: RawObject,
}

/// A member of the answer. It has either a value or properties of its own.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OutputProperty {
    /// The value that is taken when the template yields none of the right type.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<RawValue>,
    /// What the member means, for clients and models.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The members of an object, each in the same form as this one. Only when type is object, and not together with
    /// value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub properties: Option<RawObject>,
    /// The JSON type of the member.
    #[serde(rename = "type")]
    pub type_: OutputType,
    /// A template for the value, for example `{{.steps.search.output.url}}`. Its text is turned into the type.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// Members that Skep does not know, kept as they are.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: RawObject,
}

impl OutputProperty {
    /// The members of an object in typed form. The schema cannot say that the form repeats itself, so they are raw.
    pub fn nested(&self) -> Result<BTreeMap<String, Self>, serde_json::Error> {
        match &self.properties {
            Some(properties) => serde_json::from_value(Value::Object(properties.0.clone())),
            None => Ok(BTreeMap::new()),
        }
    }
}

/// JSON types.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum OutputType {
    #[default]
    String,
    Integer,
    Number,
    Boolean,
    Object,
    Array,
}

/// A step of a composite tool. Members that are templates see `.params`, `.steps` and, within forEach, `.forEach`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkflowStep {
    /// The arguments of the tool. Every text in it, at any depth, is a template.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arguments: Option<RawObject>,
    /// A template that yields the JSON array to go through. Needed when type is forEach.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub collection: Option<String>,
    /// A template that yields true or false. When it yields false the step is skipped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub condition: Option<String>,
    /// The output of the step when it is skipped or fails and the others go on. Whatever other steps read of this
    /// one must be in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_results: Option<RawValue>,
    /// The ids of the steps that must have finished before this one starts.
    #[serde(default, deserialize_with = "null_is_empty", skip_serializing_if = "Vec::is_empty")]
    pub depends_on: Vec<String>,
    /// The name of the step within the tool.
    pub id: String,
    /// The name of the current element in templates of the inner step. Defaults to item.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub item_var: Option<String>,
    /// How many elements are gone through at most; more of them make the step fail. At most 1000. Defaults to 100.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = null))]
    pub max_iterations: Option<i64>,
    /// How many elements are worked on at once. At most 50. Defaults to 10.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = null))]
    pub max_parallel: Option<i64>,
    /// A template for the question that the user is asked. Needed when type is elicitation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// What follows when the user closes the question or does not answer in time. Without it the call fails.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_cancel: Option<ElicitationHandler>,
    /// What follows when the user declines. Without it the call fails.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_decline: Option<ElicitationHandler>,
    /// What follows when the step fails. Without it the call fails.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_error: Option<ErrorHandler>,
    /// The JSON Schema of the answer that the user is asked for. Needed when type is elicitation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schema: Option<RawObject>,
    /// The step that is taken for every element, in the same form as this one and of type tool. Needed when type is
    /// forEach.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<RawObject>,
    /// How long the step may take. Defaults to 5m. A user is waited for 10m at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout: Option<DurationText>,
    /// The tool to call, as `workload.tool` or by the name that clients see. Needed when type is tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// What the step does. Defaults to tool.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = StepType::default()))]
    pub type_: Option<StepType>,
    /// Members that Skep does not know, kept as they are.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: RawObject,
}

impl WorkflowStep {
    /// What the step does, given or by default.
    pub fn step_type(&self) -> StepType {
        self.type_.unwrap_or_default()
    }

    /// The inner step in typed form. The schema cannot say that the form repeats itself, so it is raw.
    pub fn inner(&self) -> Result<Option<Self>, serde_json::Error> {
        self.step.as_ref().map(|step| serde_json::from_value(Value::Object(step.0.clone()))).transpose()
    }
}

/// What a step does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum StepType {
    /// It calls a tool.
    #[default]
    Tool,
    /// It asks the user.
    Elicitation,
    /// It takes another step for every element of a list.
    ForEach,
}

/// What follows when a step fails.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ErrorHandler {
    /// What follows. Defaults to abort.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = ErrorAction::default()))]
    pub action: Option<ErrorAction>,
    /// How often the step is tried again. At least 1 when action is retry, and at most 10.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = null))]
    pub retry_count: Option<i64>,
    /// How long to wait before the first new try; the pauses grow from one to the next. Defaults to 1s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_delay: Option<DurationText>,
    /// Members that Skep does not know, kept as they are.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: RawObject,
}

impl ErrorHandler {
    /// What follows, given or by default.
    pub fn action(&self) -> ErrorAction {
        self.action.unwrap_or_default()
    }
}

/// What can follow when a step fails.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ErrorAction {
    /// The call of the composite tool fails.
    #[default]
    Abort,
    /// The other steps go on; defaultResults stand in for the output.
    Continue,
    /// The step is tried again.
    Retry,
}

/// What follows when the user does not give the answer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ElicitationHandler {
    /// What follows. Defaults to abort.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = ElicitationAction::default()))]
    pub action: Option<ElicitationAction>,
    /// Members that Skep does not know, kept as they are.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: RawObject,
}

impl ElicitationHandler {
    /// What follows, given or by default.
    pub fn action(&self) -> ElicitationAction {
        self.action.unwrap_or_default()
    }
}

/// What can follow when the user does not give the answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ElicitationAction {
    /// The steps that have not started are skipped, and the call succeeds.
    SkipRemaining,
    /// The call of the composite tool fails.
    #[default]
    Abort,
    /// The other steps go on.
    Continue,
}
