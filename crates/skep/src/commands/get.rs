//! `skep get`.

use http::Request;
use http::header::ACCEPT;
use kube::Resource as _;
use kube::api::DynamicObject;
use kube::core::params::ListParams;
use serde_json::{Value, json};

use crate::cli::{GetArgs, ObjectFormat};
use crate::connection::{connect, refusal};
use crate::data_folder::DataFolder;
use crate::objects::{Kinds, KnownKind, title};
use crate::output::{self, Table};

/// Asks the server for the columns that it would show a person.
const AS_TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";

pub(super) async fn run(args: GetArgs) -> anyhow::Result<()> {
    let client = connect(&DataFolder::try_from(args.data.clone())?).await?;
    let kinds = Kinds::discover(&client).await?;
    let kind = kinds.find(&args.kind)?;
    let in_columns = matches!(args.output, ObjectFormat::Table | ObjectFormat::Wide);
    let accept = if in_columns { AS_TABLE } else { "application/json" };
    let answer: Value = client.request(request(kind, &args, accept)?).await.map_err(refusal)?;
    let found = if in_columns { &answer["rows"] } else { &answer["items"] };
    if args.name.is_none() && found.as_array().is_none_or(Vec::is_empty) {
        let place = if !kind.is_namespaced || args.all_namespaces {
            String::new()
        } else {
            format!(" in the namespace {}", args.namespace.namespace)
        };
        eprintln!("no {} found{place}", kind.resource.plural);
        if in_columns || args.output == ObjectFormat::Name {
            return Ok(());
        }
    }
    output::print(&match args.output {
        ObjectFormat::Table => columns(&answer, kind.is_namespaced && args.all_namespaces, false).text(),
        ObjectFormat::Wide => columns(&answer, kind.is_namespaced && args.all_namespaces, true).text(),
        ObjectFormat::Json => format!("{:#}\n", document(kind, answer)),
        ObjectFormat::Yaml => serde_saphyr::to_string(&document(kind, answer))?,
        ObjectFormat::Name => {
            let document = document(kind, answer);
            let one = std::slice::from_ref(&document);
            let items = document["items"].as_array().map_or(one, Vec::as_slice);
            let name = |item: &Value| title(&kind.resource, item["metadata"]["name"].as_str().unwrap_or_default());
            items.iter().flat_map(|item| [name(item), "\n".to_owned()]).collect()
        }
    })
}

fn request(kind: &KnownKind, args: &GetArgs, accept: &str) -> anyhow::Result<Request<Vec<u8>>> {
    let namespace = Some(args.namespace.namespace.as_str()).filter(|_| kind.is_namespaced && !args.all_namespaces);
    let builder = kube::core::Request::new(DynamicObject::url_path(&kind.resource, namespace));
    let mut request = match &args.name {
        Some(name) => builder.get(name, &kube::api::GetParams::default())?,
        None => builder.list(&ListParams { label_selector: args.selector.clone(), ..ListParams::default() })?,
    };
    request.headers_mut().insert(ACCEPT, accept.parse()?);
    Ok(request)
}

/// The columns that the server has made; those of less importance only when `wide`.
fn columns(answer: &Value, with_namespace: bool, wide: bool) -> Table {
    let definitions = answer["columnDefinitions"].as_array().map(Vec::as_slice).unwrap_or_default();
    let shown = |definition: &Value| wide || definition["priority"].as_i64().unwrap_or(0) == 0;
    let heading = |definition: &Value| definition["name"].as_str().unwrap_or_default().to_uppercase();
    let headings = definitions.iter().filter(|definition| shown(definition)).map(heading);
    let mut table = Table::new(with_namespace.then(|| "NAMESPACE".to_owned()).into_iter().chain(headings));
    for row in answer["rows"].as_array().into_iter().flatten() {
        let namespace = row["object"]["metadata"]["namespace"].as_str().unwrap_or_default().to_owned();
        let cells = row["cells"].as_array().into_iter().flatten().zip(definitions);
        let cells = cells.filter(|(_, definition)| shown(definition)).map(|(cell, _)| match cell {
            Value::Null => "<none>".to_owned(),
            Value::String(text) => text.clone(),
            other => other.to_string(),
        });
        table.row(with_namespace.then_some(namespace).into_iter().chain(cells));
    }
    table
}

/// The answer as a document that can be applied: every object with its kind, without the notes of the server.
fn document(kind: &KnownKind, mut answer: Value) -> Value {
    let complete = |mut object: Value| {
        if let Some(metadata) = object["metadata"].as_object_mut() {
            metadata.remove("managedFields");
        }
        object["apiVersion"] = kind.resource.api_version.clone().into();
        object["kind"] = kind.resource.kind.clone().into();
        object.sort_all_objects();
        object
    };
    if let Value::Array(items) = answer["items"].take() {
        let items: Vec<Value> = items.into_iter().map(complete).collect();
        return json!({"apiVersion": "v1", "kind": "List", "items": items});
    }
    if let Some(members) = answer.as_object_mut() {
        members.remove("items");
    }
    complete(answer)
}
