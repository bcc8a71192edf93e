//! What kind of attack a probe is about, in the words of others.

use std::fmt;

use lodestar_core::name::Excerpt;
use serde::Serialize;

macro_rules! owasp {
    ($($variant:ident = $id:literal, $title:literal;)+) => {
        /// A risk of the OWASP Top 10 for Agentic Applications 2026.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Owasp {
            $(#[doc = $title] $variant,)+
        }

        impl Owasp {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// Its number there.
            pub const fn id(self) -> &'static str {
                match self { $(Self::$variant => $id,)+ }
            }

            /// Its title there.
            pub const fn title(self) -> &'static str {
                match self { $(Self::$variant => $title,)+ }
            }
        }
    };
}

owasp! {
    Asi01 = "ASI01", "Agent Goal Hijack";
    Asi02 = "ASI02", "Tool Misuse and Exploitation";
    Asi03 = "ASI03", "Identity and Privilege Abuse";
    Asi04 = "ASI04", "Agentic Supply Chain Vulnerabilities";
    Asi05 = "ASI05", "Unexpected Code Execution";
    Asi06 = "ASI06", "Memory and Context Poisoning";
    Asi07 = "ASI07", "Insecure Inter-Agent Communication";
    Asi08 = "ASI08", "Cascading Failures";
    Asi09 = "ASI09", "Human-Agent Trust Exploitation";
    Asi10 = "ASI10", "Rogue Agents";
}

/// The class of an attack: an OWASP risk, and a technique of MITRE ATLAS where one fits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttackClass {
    /// The risk.
    pub owasp: Owasp,
    /// The technique, such as `AML.T0051.001`.
    pub atlas: Option<String>,
}

impl AttackClass {
    /// Reads `ASI06` or `ASI06 AML.T0080`.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut words = text.split_whitespace();
        let first = words.next().unwrap_or_default();
        let owasp = Owasp::ALL.iter().find(|risk| risk.id() == first);
        let owasp = owasp.ok_or_else(|| {
            format!(
                "`{}` is no class: it begins with ASI01 to ASI10 of the OWASP Top 10 for Agentic Applications",
                Excerpt::of(first)
            )
        })?;
        let atlas = words.next().map(str::to_owned);
        let is_technique = |id: &String| {
            let digits = id.strip_prefix("AML.T").unwrap_or_default();
            digits.len() >= 4 && digits.chars().all(|c| c.is_ascii_digit() || c == '.')
        };
        if atlas.as_ref().is_some_and(|id| !is_technique(id)) || words.next().is_some() {
            return Err(format!(
                "`{}` is no class: behind the OWASP number stands at most one technique such as AML.T0051.001",
                Excerpt::of(text)
            ));
        }
        Ok(Self {
            owasp: *owasp,
            atlas,
        })
    }
}

impl fmt::Display for AttackClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.owasp.id())?;
        match &self.atlas {
            Some(technique) => write!(f, " {technique}"),
            None => Ok(()),
        }
    }
}

impl Serialize for AttackClass {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_is_a_risk_and_perhaps_a_technique() {
        let class = AttackClass::parse("ASI06 AML.T0080.000").expect("a class");
        assert_eq!(class.owasp, Owasp::Asi06);
        assert_eq!(class.to_string(), "ASI06 AML.T0080.000");
        for wrong in ["", "ASI11", "ASI1", "ASI01 T0051", "ASI01 AML.T0051 more"] {
            assert!(AttackClass::parse(wrong).is_err(), "{wrong}");
        }
    }
}
