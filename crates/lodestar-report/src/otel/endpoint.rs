//! Where spans are sent to, and with which headers: from the command line and OpenTelemetry's own variables.

use lodestar_core::name::Excerpt;
use lodestar_kernel::native::http::client::{InTheClear, ServiceUrl, ServiceUrlError};
use lodestar_kernel::native::net::credential::{CredentialError, Secret, Source};
use thiserror::Error;

/// The variable with the URL of a receiver, below which the signals lie.
pub const ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";
/// The variable with the URL that takes traces, as it is.
pub const TRACES_ENDPOINT: &str = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT";
/// The variable with headers.
pub const HEADERS: &str = "OTEL_EXPORTER_OTLP_HEADERS";
/// The variable with headers for traces, in place of the other.
pub const TRACES_HEADERS: &str = "OTEL_EXPORTER_OTLP_TRACES_HEADERS";

/// Where traces lie below a receiver's URL.
const TRACES: &str = "v1/traces";

/// Why spans have nowhere to go.
#[derive(Debug, Error)]
pub enum EndpointError {
    /// The URL is none that is sent to.
    #[error("the endpoint: {0}")]
    Url(#[from] ServiceUrlError),
    /// Not a header.
    #[error(
        "`{shown}` names no source of a header; write `NAME=env:VARIABLE` or `NAME=file:PATH`: a secret on a command line is everybody's to see"
    )]
    Source {
        /// The name, inert; what follows may be a secret.
        shown: Excerpt,
    },
    /// The value is not to be had.
    #[error("the header `{name}`: {problem}")]
    Credential {
        /// Which header, inert.
        name: Excerpt,
        /// Why.
        problem: CredentialError,
    },
    /// Not a list of headers.
    #[error(
        "entry {number} of `{variable}` is no header; write `name=value`, separated by commas, with what is special percent-encoded"
    )]
    Entry {
        /// The variable.
        variable: &'static str,
        /// Which entry; the entry itself may be a secret.
        number: usize,
    },
}

/// The URL to which traces are posted: the one that was given, or else that of the environment, if any.
pub fn choose(
    given: Option<&str>,
    variable: impl Fn(&str) -> Option<String>,
    in_the_clear: InTheClear,
) -> Result<Option<ServiceUrl>, EndpointError> {
    let set = |name: &str| variable(name).filter(|value| !value.trim().is_empty());
    let whole = set(TRACES_ENDPOINT).filter(|_| given.is_none());
    let text = match (whole, given.map(str::to_owned).or_else(|| set(ENDPOINT))) {
        (Some(whole), _) => whole,
        (None, Some(base)) => below(&base),
        (None, None) => return Ok(None),
    };
    let text = on_this_machine(text.trim());
    Ok(Some(ServiceUrl::parse(&text, in_the_clear)?))
}

/// The place for traces below a URL; a URL that leads there already is taken as it is.
fn below(base: &str) -> String {
    let base = base.trim().trim_end_matches('/');
    match base.ends_with(TRACES) {
        true => base.to_owned(),
        false => format!("{base}/{TRACES}"),
    }
}

/// In the clear, `localhost` is what it means, whatever a resolver makes of it.
fn on_this_machine(url: &str) -> String {
    const LOCALHOST: &str = "http://localhost";
    match url.strip_prefix(LOCALHOST) {
        Some(rest) if rest.is_empty() || rest.starts_with([':', '/']) => {
            format!("http://127.0.0.1{rest}")
        }
        _ => url.to_owned(),
    }
}

/// The headers of the environment, and those that the caller names a source for, which come first.
pub fn headers(
    sources: &[String],
    variable: impl Fn(&str) -> Option<String>,
) -> Result<Vec<(String, Secret)>, EndpointError> {
    let mut headers = Vec::new();
    for source in sources {
        let (name, source) = named_source(source)?;
        let secret = source.read().map_err(|problem| EndpointError::Credential {
            name: Excerpt::of(&name),
            problem,
        })?;
        headers.push((name, secret));
    }
    let mut listed = [TRACES_HEADERS, HEADERS].into_iter();
    let listed = listed.find_map(|name| Some((name, variable(name)?)));
    if let Some((variable, list)) = listed {
        for (name, secret) in entries(variable, &list)? {
            if !headers
                .iter()
                .any(|(other, _)| other.eq_ignore_ascii_case(&name))
            {
                headers.push((name, secret));
            }
        }
    }
    Ok(headers)
}

fn named_source(text: &str) -> Result<(String, Source), EndpointError> {
    let (name, source) = text.split_once('=').unwrap_or((text, ""));
    let source = match source.split_once(':') {
        Some(("env", variable)) if !variable.is_empty() => Source::Env(variable.to_owned()),
        Some(("file", path)) if !path.is_empty() => Source::File(path.into()),
        _ => {
            let shown = Excerpt::of(name);
            return Err(EndpointError::Source { shown });
        }
    };
    Ok((name.to_owned(), source))
}

/// The entries of a variable, as OpenTelemetry has them: a list like that of W3C baggage.
fn entries(variable: &'static str, list: &str) -> Result<Vec<(String, Secret)>, EndpointError> {
    let entries = list.split(',').enumerate();
    let entries = entries.filter(|(_, entry)| !entry.trim().is_empty());
    let read = |(at, entry): (usize, &str)| {
        let pair = entry.split_once('=');
        let pair = pair.and_then(|(name, value)| Some((name.trim(), decoded(value.trim())?)));
        match pair {
            Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), Secret::part(&value))),
            _ => {
                let number = at + 1;
                Err(EndpointError::Entry { variable, number })
            }
        }
    };
    entries.map(read).collect()
}

/// Percent-decoded.
fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        match byte {
            b'%' => {
                let (digits, after) = rest.split_at_checked(2)?;
                let digits = str::from_utf8(digits).ok()?;
                let is_hex = digits.bytes().all(|b| b.is_ascii_hexdigit());
                bytes.push(u8::from_str_radix(digits, 16).ok().filter(|_| is_hex)?);
                rest = after;
            }
            byte => bytes.push(byte),
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(given: Option<&str>, set: &[(&str, &str)]) -> Option<String> {
        let variable = |name: &str| {
            let found = set.iter().find(|(one, _)| *one == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        let url = choose(given, variable, InTheClear::OnLoopback).expect("a url");
        url.map(|url| url.to_string())
    }

    #[test]
    fn what_is_given_counts_before_the_environment() {
        let both = [
            (ENDPOINT, "https://base.example"),
            (TRACES_ENDPOINT, "https://whole.example/in"),
        ];
        let given = chosen(Some("https://given.example"), &both);
        assert_eq!(given.as_deref(), Some("https://given.example/v1/traces"));
        assert_eq!(
            chosen(None, &both).as_deref(),
            Some("https://whole.example/in")
        );
        let base = chosen(None, &both[..1]);
        assert_eq!(base.as_deref(), Some("https://base.example/v1/traces"));
        assert_eq!(chosen(None, &[]), None);
        assert_eq!(chosen(None, &[(ENDPOINT, " ")]), None);
    }

    #[test]
    fn a_url_that_leads_to_traces_already_is_taken_as_it_is() {
        for url in [
            "https://a.example/otlp/v1/traces",
            "https://a.example/otlp/v1/traces/",
        ] {
            let chosen = chosen(Some(url), &[]);
            assert_eq!(chosen.as_deref(), Some("https://a.example/otlp/v1/traces"));
        }
    }

    #[test]
    fn in_the_clear_only_this_machine_is_spoken_to() {
        let localhost = chosen(Some("http://localhost:4318"), &[]);
        assert_eq!(
            localhost.as_deref(),
            Some("http://127.0.0.1:4318/v1/traces")
        );
        for url in [
            "http://collector.example:4318",
            "http://10.0.0.1:4318",
            "http://localhost.example",
            "http://localhostile",
            "ws://127.0.0.1",
        ] {
            let none = |_: &str| None;
            assert!(
                choose(Some(url), none, InTheClear::OnLoopback).is_err(),
                "{url}"
            );
        }
        let none = |_: &str| None;
        let said = choose(Some("http://10.0.0.1:4318"), none, InTheClear::Anywhere);
        assert!(said.is_ok());
    }

    #[test]
    fn a_password_in_a_url_is_refused_and_not_repeated() {
        let url = "http://user:hunter2@127.0.0.1:4318";
        for (given, set) in [
            (Some(url), None),
            (None, Some(ENDPOINT)),
            (None, Some(TRACES_ENDPOINT)),
        ] {
            let variable = |name: &str| (set == Some(name)).then(|| url.to_owned());
            let refused = choose(given, variable, InTheClear::OnLoopback);
            let said = refused.expect_err("a user").to_string();
            assert!(said.contains("has a user before its host"), "{said}");
            assert!(!said.contains("hunter2"), "{said}");
        }
    }

    #[test]
    fn headers_are_read_like_baggage_and_their_values_never_shown() {
        let list = " api-key = a%20b%2C ,,Tenant=acme=1";
        let found = entries(HEADERS, list).expect("headers");
        let names: Vec<_> = found.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["api-key", "Tenant"]);
        assert_eq!(decoded("a%20b%2C").as_deref(), Some("a b,"));
        for bad in [
            "hunter2",
            "=hunter2",
            "a=hunter2%",
            "a=hunter2%zz",
            "a=%ff",
            "a=%+1",
        ] {
            let problem = entries(HEADERS, &format!("ok=1,{bad}"))
                .expect_err(bad)
                .to_string();
            assert!(problem.starts_with("entry 2 of"), "{problem}");
            assert!(!problem.contains("hunter2"), "{problem}");
        }
    }

    #[test]
    fn a_value_on_the_command_line_is_refused_and_not_repeated() {
        for bad in [
            "authorization=Bearer hunter2",
            "authorization",
            "a=env:",
            "a=file:",
        ] {
            let problem = headers(&[bad.to_owned()], |_| None)
                .expect_err(bad)
                .to_string();
            assert!(problem.contains("env:VARIABLE"), "{problem}");
            assert!(!problem.contains("hunter2"), "{problem}");
        }
    }
}
