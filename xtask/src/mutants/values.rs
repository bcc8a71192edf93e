//! What the body of a function is replaced by: constants of the type that it returns.

use syn::{GenericArgument, PathArguments, ReturnType, Type, TypePath};

use super::rewrite::shown;

/// More values than this say nothing new about one function.
const MOST: usize = 6;

/// Values of what a function returns, as source text. Nothing for a type that has no name: every
/// branch of a function returns the same one, so that a constant cannot stand beside the body.
pub(super) fn of_return(output: &ReturnType) -> Vec<String> {
    match output {
        ReturnType::Default => vec!["()".to_owned()],
        ReturnType::Type(_, ty) => of(ty),
    }
}

fn of(ty: &Type) -> Vec<String> {
    let mut values = match ty {
        Type::Never(_) | Type::ImplTrait(_) => Vec::new(),
        Type::Paren(inner) => of(&inner.elem),
        Type::Group(inner) => of(&inner.elem),
        Type::Tuple(tuple) => tuple_of(tuple.elems.iter()),
        Type::Array(array) => wrapped(&of(&array.elem), |v| {
            format!("[{v}; {}]", shown(&array.len))
        }),
        Type::Reference(reference) => match &*reference.elem {
            Type::Path(path) if named(path).is_some_and(|(name, _)| name == "str") => {
                texts(&["\"\"", "\"xyzzy\""])
            }
            Type::Slice(slice) => {
                let full = wrapped(&of(&slice.elem), |v| format!("Vec::leak(vec![{v}])"));
                with("Vec::leak(Vec::new())", full)
            }
            elem => wrapped(&of(elem), |v| format!("Box::leak(Box::new({v}))")),
        },
        Type::Path(path) => of_path(path),
        _ => texts(&["Default::default()"]),
    };
    values.truncate(MOST);
    values
}

fn of_path(path: &TypePath) -> Vec<String> {
    let Some((name, arguments)) = named(path) else {
        return texts(&["Default::default()"]);
    };
    let inner = arguments
        .first()
        .map_or_else(|| texts(&["Default::default()"]), |ty| of(ty));
    match name.as_str() {
        "bool" => texts(&["true", "false"]),
        "u8" | "u16" | "u32" | "u64" | "u128" | "usize" => texts(&["0", "1"]),
        "i8" | "i16" | "i32" | "i64" | "i128" | "isize" => texts(&["0", "1", "-1"]),
        "f32" | "f64" => texts(&["0.0", "1.0", "-1.0"]),
        "String" => texts(&["String::new()", "\"xyzzy\".into()"]),
        "Result" => wrapped(&inner, |v| format!("Ok({v})")),
        "Option" => with("None", wrapped(&inner, |v| format!("Some({v})"))),
        "Vec" => with("vec![]", wrapped(&inner, |v| format!("vec![{v}]"))),
        "Box" | "Arc" | "Rc" => wrapped(&inner, |v| format!("{name}::new({v})")),
        _ => texts(&["Default::default()"]),
    }
}

/// Each place varied while the others hold their first value.
fn tuple_of<'a>(types: impl Iterator<Item = &'a Type>) -> Vec<String> {
    let places: Vec<Vec<String>> = types.map(of).collect();
    let Some(first) = places
        .iter()
        .map(|place| place.first().cloned())
        .collect::<Option<Vec<String>>>()
    else {
        return Vec::new();
    };
    let mut tuples = vec![first.clone()];
    for (at, place) in places.iter().enumerate() {
        for value in place.iter().skip(1) {
            let mut tuple = first.clone();
            tuple[at].clone_from(value);
            tuples.push(tuple);
        }
    }
    let text = |tuple: Vec<String>| match tuple.as_slice() {
        [one] => format!("({one},)"),
        several => format!("({})", several.join(", ")),
    };
    tuples.into_iter().map(text).collect()
}

/// The last name of a path and its type arguments.
fn named(path: &TypePath) -> Option<(String, Vec<&Type>)> {
    let last = path.path.segments.last()?;
    let arguments = match &last.arguments {
        PathArguments::AngleBracketed(given) => {
            let types = given.args.iter().filter_map(|argument| match argument {
                GenericArgument::Type(ty) => Some(ty),
                _ => None,
            });
            types.collect()
        }
        _ => Vec::new(),
    };
    Some((last.ident.to_string(), arguments))
}

fn wrapped(values: &[String], wrap: impl Fn(&str) -> String) -> Vec<String> {
    values.iter().map(|value| wrap(value)).collect()
}

fn with(first: &str, mut rest: Vec<String>) -> Vec<String> {
    rest.insert(0, first.to_owned());
    rest
}

fn texts(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|&text| text.to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(output: &str) -> Vec<String> {
        of_return(&syn::parse_str(output).unwrap())
    }

    #[test]
    fn constants_follow_the_type() {
        assert_eq!(values(""), ["()"]);
        assert_eq!(values("-> bool"), ["true", "false"]);
        assert_eq!(values("-> i32"), ["0", "1", "-1"]);
        assert_eq!(values("-> Result<(), Problem>"), ["Ok(())"]);
        assert_eq!(values("-> io::Result<u8>"), ["Ok(0)", "Ok(1)"]);
        assert_eq!(values("-> fmt::Result"), ["Ok(Default::default())"]);
        assert_eq!(
            values("-> Option<&str>"),
            ["None", "Some(\"\")", "Some(\"xyzzy\")"]
        );
        assert_eq!(
            values("-> (bool, Digest)"),
            ["(true, Default::default())", "(false, Default::default())"]
        );
        assert_eq!(values("-> [u8; 2]"), ["[0; 2]", "[1; 2]"]);
        assert_eq!(
            values("-> &[u8]"),
            [
                "Vec::leak(Vec::new())",
                "Vec::leak(vec![0])",
                "Vec::leak(vec![1])"
            ]
        );
    }

    #[test]
    fn a_type_without_a_name_has_none() {
        assert!(values("-> impl Iterator<Item = u8>").is_empty());
        assert!(values("-> !").is_empty());
    }
}
