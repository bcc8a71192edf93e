//! A list with at least one element, for links that may not be without a parent.

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// At least one element, in order.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(
    try_from = "Vec<T>",
    into = "Vec<T>",
    bound(serialize = "T: Clone + Serialize")
)]
pub struct NonEmpty<T> {
    // INVARIANT: not empty; every way in goes through `one` or `try_from`.
    items: Vec<T>,
}

/// The list has no elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("the list is empty; at least one element is needed")]
pub struct EmptyList;

impl<T> NonEmpty<T> {
    /// A list of one.
    pub fn one(item: T) -> Self {
        Self { items: vec![item] }
    }

    /// Adds an element at the end.
    pub fn push(&mut self, item: T) {
        self.items.push(item);
    }

    /// The first element.
    pub fn first(&self) -> &T {
        &self.items[0]
    }

    /// The elements.
    pub fn as_slice(&self) -> &[T] {
        &self.items
    }

    /// The elements, one after another.
    pub fn iter(&self) -> std::slice::Iter<'_, T> {
        self.items.iter()
    }
}

impl<T> TryFrom<Vec<T>> for NonEmpty<T> {
    type Error = EmptyList;

    fn try_from(items: Vec<T>) -> Result<Self, EmptyList> {
        if items.is_empty() {
            Err(EmptyList)
        } else {
            Ok(Self { items })
        }
    }
}

impl<T> From<NonEmpty<T>> for Vec<T> {
    fn from(list: NonEmpty<T>) -> Self {
        list.items
    }
}

impl<'a, T> IntoIterator for &'a NonEmpty<T> {
    type Item = &'a T;
    type IntoIter = std::slice::Iter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_list_does_not_get_in() {
        assert_eq!(NonEmpty::<u8>::try_from(vec![]), Err(EmptyList));
        assert!(serde_json::from_str::<NonEmpty<u8>>("[]").is_err());
        let list: NonEmpty<u8> = serde_json::from_str("[3,4]").unwrap();
        assert_eq!((list.first(), list.as_slice()), (&3, &[3, 4][..]));
        assert_eq!(serde_json::to_string(&list).unwrap(), "[3,4]");
    }
}
