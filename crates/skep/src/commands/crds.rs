//! `skep crds`.

use serde_json::{Value, json};
use skep_api::crd::{self, Entry};

use crate::cli::{CrdsArgs, DocumentFormat};
use crate::hint::{Hinted, closest};
use crate::output;

/// What to print, and how.
#[derive(Debug)]
pub struct Settings {
    format: DocumentFormat,
    kinds: Vec<&'static Entry>,
}

impl TryFrom<CrdsArgs> for Settings {
    type Error = anyhow::Error;

    fn try_from(args: CrdsArgs) -> anyhow::Result<Self> {
        let mut kinds = Vec::new();
        for name in &args.kinds {
            let entry = find(name)?;
            if !kinds.iter().any(|known: &&Entry| known.definition.kind == entry.definition.kind) {
                kinds.push(entry);
            }
        }
        if args.kinds.is_empty() {
            kinds.extend(crd::ALL);
        }
        Ok(Self { format: args.output, kinds })
    }
}

fn find(name: &str) -> Result<&'static Entry, Hinted> {
    crd::ALL.iter().find(|entry| entry.answers_to(name)).ok_or_else(|| {
        // Nobody wants to read a long mistake again.
        let shown: String = name.chars().take(64).collect();
        let problem = Hinted::new(format!("there is no kind {shown:?}"));
        if let Some(meant) = closest(name, crd::ALL.iter().flat_map(Entry::names)) {
            return problem.hint(format!("did you mean {meant}?"));
        }
        let kinds: Vec<_> = crd::ALL.iter().map(|entry| entry.definition.kind).collect();
        problem.hint(format!("the kinds are {}", kinds.join(", ")))
    })
}

pub(super) fn run(settings: &Settings) -> anyhow::Result<()> {
    let documents: Vec<Value> = settings.kinds.iter().map(|entry| entry.document()).collect();
    output::print(&match settings.format {
        DocumentFormat::Yaml => yaml_stream(&documents)?,
        DocumentFormat::Json => format!("{:#}\n", one_document(documents)),
    })
}

/// YAML documents, each behind a marker, so that the streams of two calls can be joined.
pub fn yaml_stream(documents: &[Value]) -> anyhow::Result<String> {
    let mut stream = String::new();
    for document in documents {
        let mut document = document.clone();
        document.sort_all_objects();
        stream.push_str("---\n");
        stream.push_str(&serde_saphyr::to_string(&document)?);
    }
    Ok(stream)
}

fn one_document(mut documents: Vec<Value>) -> Value {
    if documents.len() == 1 {
        documents.remove(0)
    } else {
        json!({ "apiVersion": "v1", "kind": "List", "items": documents })
    }
}
