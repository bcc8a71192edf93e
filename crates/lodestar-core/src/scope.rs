//! Where something holds: a place in the hierarchy global ⊃ organization ⊃ user ⊃ project ⊃ repo ⊃ session.
//!
//! A scope names some of the levels below global, and means everything that agrees with all the
//! names it gives. A level it leaves out is not restricted: `project:web` is the project `web` of
//! any organization, `organization:acme/project:web` only the one of `acme`. So an outer scope
//! contains an inner one exactly when *every level the outer names is named by the inner, equally*.
//! An inner scope that is silent on such a level may lie outside, and is therefore not contained.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use thiserror::Error;

use crate::name::{Excerpt, NameError, ScopeName, UnknownWord, deserialize_str, words};

words! {
    /// A level of the hierarchy that carries a name; `global`, above them all, has none.
    #[derive(PartialOrd, Ord)]
    pub enum ScopeLevel: "scope level" {
        /// A company or team.
        Organization = "organization",
        /// A person.
        User = "user",
        /// A project, which has its own log directory.
        Project = "project",
        /// A repository of a project.
        Repo = "repo",
        /// One governed session.
        Session = "session",
    }
}

const LEVELS: usize = ScopeLevel::ALL.len();

/// The text of the scope that contains all others.
const GLOBAL: &str = "global";

/// A place in the hierarchy.
///
/// ```
/// use lodestar_core::scope::Scope;
///
/// let acme: Scope = "organization:acme".parse()?;
/// let web: Scope = "organization:acme/project:web".parse()?;
/// assert!(acme.contains(&web) && !web.contains(&acme));
/// # Ok::<(), lodestar_core::scope::ScopeError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Default)]
pub struct Scope {
    names: [Option<ScopeName>; LEVELS],
}

/// Why text is not a scope.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ScopeError {
    /// The text has no characters.
    #[error(
        "the scope is empty; write `global`, or levels such as `organization:acme/project:web`"
    )]
    Empty,
    /// A part between slashes has no colon.
    #[error(
        "the scope part `{shown}` has no name; a part is written `level:name`, such as `project:web`"
    )]
    Unnamed {
        /// The part, inert.
        shown: Excerpt,
    },
    /// There is no such level.
    #[error(transparent)]
    UnknownLevel(#[from] UnknownWord),
    /// The name is refused.
    #[error("scope level `{level}`: {source}")]
    Name {
        /// The level that carries the name.
        level: ScopeLevel,
        /// Why it was refused.
        source: NameError,
    },
    /// A level stands twice, or a wider one after a narrower one.
    #[error(
        "scope level `{level}` stands after `{after}`; the order is organization, user, project, repo, session, each at most once"
    )]
    OutOfOrder {
        /// The misplaced level.
        level: ScopeLevel,
        /// The level before it.
        after: ScopeLevel,
    },
}

impl Scope {
    /// The scope that contains all others.
    pub fn global() -> Self {
        Self::default()
    }

    /// The part of this scope that has the given name at the given level.
    ///
    /// Levels are added from wide to narrow: a level at or above one that is already named is refused.
    pub fn with(mut self, level: ScopeLevel, name: ScopeName) -> Result<Self, ScopeError> {
        if let Some((after, _)) = self.named().last()
            && after >= level
        {
            return Err(ScopeError::OutOfOrder { level, after });
        }
        self.names[level as usize] = Some(name);
        Ok(self)
    }

    /// The name at a level, if the scope gives one.
    pub fn name(&self, level: ScopeLevel) -> Option<&ScopeName> {
        self.names[level as usize].as_ref()
    }

    /// The levels that the scope names, from wide to narrow.
    pub fn named(&self) -> impl DoubleEndedIterator<Item = (ScopeLevel, &ScopeName)> {
        ScopeLevel::ALL
            .iter()
            .filter_map(|&level| Some((level, self.name(level)?)))
    }

    /// Whether everything in `inner` is also in this scope: a partial order.
    pub fn contains(&self, inner: &Self) -> bool {
        self.named()
            .all(|(level, name)| inner.name(level) == Some(name))
    }

    /// The narrowest scope that contains both.
    pub fn join(&self, other: &Self) -> Self {
        let mut names = self.names.clone();
        for (mine, theirs) in names.iter_mut().zip(&other.names) {
            if mine != theirs {
                *mine = None;
            }
        }
        Self { names }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts: Vec<_> = self
            .named()
            .map(|(level, name)| format!("{level}:{name}"))
            .collect();
        f.pad(
            if parts.is_empty() {
                GLOBAL.to_owned()
            } else {
                parts.join("/")
            }
            .as_str(),
        )
    }
}

impl fmt::Debug for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Scope({self})")
    }
}

impl FromStr for Scope {
    type Err = ScopeError;

    fn from_str(text: &str) -> Result<Self, ScopeError> {
        match text {
            "" => return Err(ScopeError::Empty),
            GLOBAL => return Ok(Self::global()),
            _ => {}
        }
        text.split('/').try_fold(Self::global(), |scope, part| {
            let (level, name) = part.split_once(':').ok_or_else(|| ScopeError::Unnamed {
                shown: Excerpt::of(part),
            })?;
            let level: ScopeLevel = level.parse()?;
            let name = ScopeName::new(name).map_err(|source| ScopeError::Name { level, source })?;
            scope.with(level, name)
        })
    }
}

impl Serialize for Scope {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Scope {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserialize_str(deserializer)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use proptest::prelude::*;

    use super::*;

    fn scope(text: &str) -> Scope {
        text.parse().unwrap()
    }

    /// Few names per level, so that equal, comparable and unrelated scopes all turn up often.
    pub(crate) fn any_scope() -> impl Strategy<Value = Scope> {
        prop::array::uniform5(prop::option::of(prop::sample::select(vec![
            "web", "web2", "ann",
        ])))
        .prop_map(|names| {
            ScopeLevel::ALL
                .iter()
                .zip(names)
                .fold(Scope::global(), |scope, (&level, name)| match name {
                    Some(name) => scope.with(level, ScopeName::new(name).unwrap()).unwrap(),
                    None => scope,
                })
        })
    }

    #[test]
    fn each_level_contains_what_is_below_it() {
        let chain = [
            "global",
            "organization:acme",
            "organization:acme/user:ann",
            "organization:acme/user:ann/project:web",
            "organization:acme/user:ann/project:web/repo:site",
            "organization:acme/user:ann/project:web/repo:site/session:s1",
        ];
        for (i, outer) in chain.iter().enumerate() {
            for (j, inner) in chain.iter().enumerate() {
                assert_eq!(
                    scope(outer).contains(&scope(inner)),
                    i <= j,
                    "{outer} {inner}"
                );
            }
        }
    }

    #[test]
    fn a_name_that_starts_like_another_is_not_inside_it() {
        assert!(!scope("project:proj").contains(&scope("project:proj2")));
        assert!(!scope("project:proj").contains(&scope("project:proj2/session:s")));
        assert!(!scope("project:proj2").contains(&scope("project:proj")));
    }

    #[test]
    fn a_name_at_another_level_is_another_place() {
        assert!(!scope("user:web").contains(&scope("project:web")));
        assert!(!scope("organization:web").contains(&scope("user:web/project:web")));
    }

    #[test]
    fn a_level_left_out_is_open_outside_and_unproven_inside() {
        assert!(scope("project:web").contains(&scope("organization:acme/project:web")));
        assert!(!scope("organization:acme/project:web").contains(&scope("project:web")));
        assert!(scope("organization:acme").contains(&scope("organization:acme/session:s")));
    }

    #[test]
    fn there_is_one_spelling_and_others_are_refused() {
        assert_eq!(scope("global").to_string(), "global");
        assert!(matches!("".parse::<Scope>(), Err(ScopeError::Empty)));
        for (text, part) in [
            ("acme", "acme"),
            ("organization:a/", ""),
            ("global/project:web", "global"),
            ("/", ""),
        ] {
            let error = text.parse::<Scope>().unwrap_err();
            assert!(
                matches!(&error, ScopeError::Unnamed { shown } if shown.as_str() == part),
                "{error}"
            );
        }
        assert!(matches!(
            "team:a".parse::<Scope>(),
            Err(ScopeError::UnknownLevel(_))
        ));
        assert!(matches!(
            "Project:a".parse::<Scope>(),
            Err(ScopeError::UnknownLevel(_))
        ));
        assert!(matches!(
            "project:".parse::<Scope>(),
            Err(ScopeError::Name {
                source: NameError::Empty,
                ..
            })
        ));
        assert!(matches!(
            "project:a:b".parse::<Scope>(),
            Err(ScopeError::Name { .. })
        ));
        assert!(matches!(
            "project:..".parse::<Scope>(),
            Err(ScopeError::Name { .. })
        ));
        assert_eq!(
            "project:a/user:b".parse::<Scope>(),
            Err(ScopeError::OutOfOrder {
                level: ScopeLevel::User,
                after: ScopeLevel::Project
            })
        );
        assert!(matches!(
            "user:a/user:a".parse::<Scope>(),
            Err(ScopeError::OutOfOrder { .. })
        ));
    }

    proptest! {
        #[test]
        fn containment_is_reflexive(a in any_scope()) {
            prop_assert!(a.contains(&a));
            prop_assert!(Scope::global().contains(&a));
        }

        #[test]
        fn containment_is_antisymmetric(a in any_scope(), b in any_scope()) {
            prop_assert_eq!(a.contains(&b) && b.contains(&a), a == b);
        }

        #[test]
        fn containment_is_transitive(a in any_scope(), b in any_scope(), c in any_scope()) {
            // Joining makes comparable chains, which independent scopes rarely are.
            let ab = a.join(&b);
            let abc = ab.join(&c);
            prop_assert!(abc.contains(&ab) && ab.contains(&a) && abc.contains(&a));
            if a.contains(&b) && b.contains(&c) {
                prop_assert!(a.contains(&c));
            }
        }

        #[test]
        fn the_join_is_the_least_scope_that_contains_both(a in any_scope(), b in any_scope(), c in any_scope()) {
            let join = a.join(&b);
            prop_assert!(join.contains(&a) && join.contains(&b));
            prop_assert_eq!(&join, &b.join(&a));
            prop_assert_eq!(c.contains(&a) && c.contains(&b), c.contains(&join));
        }

        #[test]
        fn scopes_read_back(a in any_scope()) {
            prop_assert_eq!(a.to_string().parse::<Scope>().unwrap(), a.clone());
            let json = serde_json::to_string(&a).unwrap();
            prop_assert_eq!(serde_json::from_str::<Scope>(&json).unwrap(), a);
        }

        #[test]
        fn any_text_is_refused_inert_or_read_back_exactly(text in "(organization|user|project|repo|session|x)?[:/]?.{0,8}(/[a-z]{1,7}:[a-z]{0,3})?") {
            match text.parse::<Scope>() {
                Ok(scope) => prop_assert_eq!(scope.to_string(), text),
                Err(error) => prop_assert!(error.to_string().bytes().all(|b| (b' '..=b'~').contains(&b))),
            }
        }
    }
}
