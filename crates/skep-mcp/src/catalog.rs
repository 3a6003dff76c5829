//! Lists of tools, resources and prompts, taken apart without reading what the items are.

use std::borrow::Cow;

use crate::json::{self, JsonError, Names, Scanner, Span};
use crate::method;

/// What is listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CatalogKind {
    /// Tools, known by their names.
    Tools,
    /// Prompts, known by their names.
    Prompts,
    /// Resources, known by their addresses.
    Resources,
    /// Templates of resources, known by the form of their addresses.
    Templates,
}

impl CatalogKind {
    const ALL: [Self; 4] = [Self::Tools, Self::Prompts, Self::Resources, Self::Templates];

    /// What the answer to a method lists, if it lists anything.
    pub fn of(method: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.method() == method)
    }

    /// The method that asks for the list.
    pub fn method(self) -> &'static str {
        match self {
            Self::Tools => method::TOOLS_LIST,
            Self::Prompts => method::PROMPTS_LIST,
            Self::Resources => method::RESOURCES_LIST,
            Self::Templates => method::TEMPLATES_LIST,
        }
    }

    /// The member of the result that holds the items.
    pub fn member(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Prompts => "prompts",
            Self::Resources => "resources",
            Self::Templates => "resourceTemplates",
        }
    }

    /// The member of an item that it is known by.
    pub fn key(self) -> &'static str {
        match self {
            Self::Tools | Self::Prompts => "name",
            Self::Resources => "uri",
            Self::Templates => "uriTemplate",
        }
    }
}

/// Why a result is no list.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CatalogError {
    /// It is no JSON, or an item has a member twice.
    #[error(transparent)]
    Json(#[from] JsonError),
    /// The result is no object.
    #[error("the result is no object")]
    NoObject,
    /// The result has no array of items.
    #[error("the result has no array {0}")]
    NoItems(&'static str),
    /// Something in the list is not known by anything.
    #[error("item {0} has no {1}")]
    NoKey(usize, &'static str),
}

/// One page of a list: the result of a list request.
#[derive(Debug)]
pub struct Catalog<'a> {
    result: &'a str,
    array: Span,
    items: Vec<Item<'a>>,
}

/// A tool, resource or prompt as its server wrote it.
#[derive(Debug, Clone)]
pub struct Item<'a> {
    /// What it is known by.
    pub key: Cow<'a, str>,
    /// All of it, as JSON.
    pub json: &'a str,
}

impl<'a> Catalog<'a> {
    /// Takes a result apart.
    pub fn read(kind: CatalogKind, result: &'a str) -> Result<Self, CatalogError> {
        let mut scanner = Scanner::new(result);
        if scanner.peek() != Some(b'{') {
            return Err(CatalogError::NoObject);
        }
        let mut names = Names::default();
        let mut spans = Vec::new();
        let mut array = None;
        scanner.object(|scanner, name| {
            if names.add(scanner, name)? != kind.member() || scanner.peek() != Some(b'[') {
                return scanner.value().map(drop);
            }
            array = Some(scanner.array(|scanner| {
                spans.push(scanner.value()?);
                Ok(())
            })?);
            Ok(())
        })?;
        scanner.end()?;
        let array = array.ok_or(CatalogError::NoItems(kind.member()))?;
        let item = |(index, span): (usize, &Span)| {
            let json = span.of(result);
            let key = key(json, kind.key())?.ok_or(CatalogError::NoKey(index, kind.key()))?;
            Ok(Item { key, json })
        };
        let items = spans.iter().enumerate().map(item).collect::<Result<_, CatalogError>>()?;
        Ok(Self { result, array, items })
    }

    /// The items in their order.
    pub fn items(&self) -> &[Item<'a>] {
        &self.items
    }

    /// The same result with other items. Everything around them stays as it is.
    pub fn with_items<'b>(&self, items: impl IntoIterator<Item = &'b str>) -> String {
        let mut list = String::from("[");
        for (index, item) in items.into_iter().enumerate() {
            list.push_str(if index == 0 { "" } else { "," });
            list.push_str(item);
        }
        list.push(']');
        let (before, after) = (self.result.get(..self.array.start), self.result.get(self.array.end..));
        [before.unwrap_or_default(), &list, after.unwrap_or_default()].concat()
    }
}

/// What an item is known by. One whose members are there twice could be two things at once.
fn key<'a>(item: &'a str, wanted: &str) -> Result<Option<Cow<'a, str>>, JsonError> {
    let mut scanner = Scanner::new(item);
    if scanner.peek() != Some(b'{') {
        return Ok(None);
    }
    let mut names = Names::default();
    let mut found = None;
    scanner.object(|scanner, name| {
        let name = names.add(scanner, name)?;
        let value = scanner.value()?;
        if name == wanted {
            found = json::decode(value.of(item));
        }
        Ok(())
    })?;
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str =
        r#"{"_meta":{"x":1}, "tools":[{"name":"a","y":[1e2]}, {"z":{},"name":"\u0062"}] ,"nextCursor":""}"#;

    #[test]
    fn items_are_dropped_and_the_rest_stays() {
        let catalog = Catalog::read(CatalogKind::Tools, PAGE).unwrap();
        let keys: Vec<&str> = catalog.items().iter().map(|item| &*item.key).collect();
        assert_eq!(keys, ["a", "b"]);
        let kept = catalog.with_items(catalog.items().iter().filter(|item| item.key == "b").map(|item| item.json));
        assert_eq!(kept, r#"{"_meta":{"x":1}, "tools":[{"z":{},"name":"\u0062"}] ,"nextCursor":""}"#);
        assert_eq!(catalog.with_items([]), r#"{"_meta":{"x":1}, "tools":[] ,"nextCursor":""}"#);
    }

    #[test]
    fn what_is_no_list_is_refused() {
        let read = |text| Catalog::read(CatalogKind::Resources, text).map(|catalog| catalog.items().len());
        assert_eq!(read(r#"{"resources":[]}"#), Ok(0));
        assert_eq!(read("[]"), Err(CatalogError::NoObject));
        assert_eq!(read("{}"), Err(CatalogError::NoItems("resources")));
        assert_eq!(read(r#"{"resources":{}}"#), Err(CatalogError::NoItems("resources")));
        assert_eq!(read(r#"{"resources":[{"name":"x"}]}"#), Err(CatalogError::NoKey(0, "uri")));
        assert!(read(r#"{"resources":[{"uri":"a","uri":"b"}]}"#).is_err());
        assert!(read(r#"{"resources":[],"resources":[]}"#).is_err());
        assert_eq!(CatalogKind::of("resources/templates/list"), Some(CatalogKind::Templates));
        assert_eq!(CatalogKind::of("tools/call"), None);
    }
}
