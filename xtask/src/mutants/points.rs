//! Finds the mutants of a file: where cargo-mutants would change something, and to what.
//!
//! Left alone: tests, constants and `const fn`, patterns, types, what stands inside of macros, and
//! implementations of `Debug`, which say nothing that a rule depends on.

use std::collections::{BTreeSet, HashMap};
use std::ops::Range;

use proc_macro2::Span;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{Attribute, BinOp, Block, Expr, Pat, Signature, UnOp};

use super::rewrite::{Edits, Id, alternative, choice, on, point, shown};
use super::values;

/// One change to one place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mutant {
    pub(super) id: Id,
    /// The mutants of one point share its number: that of the first of them.
    pub(super) point: Id,
    pub(super) line: usize,
    pub(super) column: usize,
    /// `Type::function`, or the function alone.
    pub(super) function: String,
    /// What is changed, in words that stay the same when lines move.
    pub(super) change: String,
}

/// A file with its mutants put in.
#[derive(Debug)]
pub(super) struct Rewritten {
    pub(super) text: String,
    /// All that were found, whether dropped or not.
    pub(super) mutants: Vec<Mutant>,
}

/// Finds the mutants of a file, numbers them from `first` on, and puts in those that are not dropped.
pub(super) fn rewrite(
    source: &str,
    first: Id,
    dropped: &BTreeSet<Id>,
) -> Result<Rewritten, syn::Error> {
    let file = syn::parse_file(source)?;
    let mut finder = Finder {
        next: first,
        dropped,
        source,
        within: Vec::new(),
        function: None,
        named: HashMap::new(),
        edits: Edits::default(),
        mutants: Vec::new(),
    };
    finder.visit_file(&file);
    Ok(Rewritten {
        text: finder.edits.apply(source),
        mutants: finder.mutants,
    })
}

struct Finder<'a> {
    next: Id,
    dropped: &'a BTreeSet<Id>,
    source: &'a str,
    /// The types and traits around.
    within: Vec<String>,
    function: Option<String>,
    /// How often each change was made to each function.
    named: HashMap<(String, String), usize>,
    edits: Edits,
    mutants: Vec<Mutant>,
}

/// The live alternatives at a point.
struct Point {
    id: Id,
    live: Vec<(Id, String)>,
}

impl Finder<'_> {
    /// Numbers the alternatives of a point; gives back those to put in, if there are any.
    fn point(&mut self, span: Span, alternatives: Vec<(String, String)>) -> Option<Point> {
        let function = self.function.clone()?;
        let id = self.next;
        let mut live = Vec::new();
        for (mut change, text) in alternatives {
            let at = span.start();
            // The same change to the same words of one function: which of them it is.
            let named = (function.clone(), change.clone());
            let before = self.named.entry(named).or_default();
            *before += 1;
            if *before > 1 {
                change = format!("{change} ({before})");
            }
            self.mutants.push(Mutant {
                id: self.next,
                point: id,
                line: at.line,
                column: at.column + 1,
                function: function.clone(),
                change,
            });
            if !self.dropped.contains(&self.next) {
                live.push((self.next, text));
            }
            self.next += 1;
        }
        (!live.is_empty()).then_some(Point { id, live })
    }

    fn body(&mut self, signature: &Signature, block: &Block) {
        let function = signature.ident.to_string();
        let of_default = self
            .within
            .last()
            .is_some_and(|t| t.ends_with(" as Default"));
        let body = shown(block);
        let body = body.trim_start_matches('{').trim_end_matches('}').trim();
        let returned = match &signature.output {
            syn::ReturnType::Default => String::new(),
            output => format!(" {}", shown(output)),
        };
        let values = values::of_return(&signature.output).into_iter();
        let values = values.filter(|value| {
            // The same as what stands there, or what would call itself.
            let same = value == body || value == "Default::default()" && body == "Self::default()";
            !(same || body.is_empty() || of_default && value.contains("default()"))
        });
        let alternatives = values.map(|value| {
            let change = format!("replace the body of `{function}`{returned} with `{value}`");
            (change, value)
        });
        let alternatives = alternatives.collect();
        let Some(Point { id, live }) = self.point(signature.ident.span(), alternatives) else {
            return;
        };
        let (open, close) = point(id);
        let returns: String = live
            .iter()
            .map(|(id, value)| format!("if {} {{ return {}; }} ", on(*id), alternative(*id, value)))
            .collect();
        let start = block.brace_token.span.open().byte_range().end;
        self.edits.at(start, format!("{open}{returns}{close}"));
    }

    fn in_function(&mut self, signature: &Signature, attributes: &[Attribute], block: &Block) {
        if signature.constness.is_some() || of_tests(attributes) {
            return;
        }
        let name = match self.within.last() {
            Some(within) => format!("{within}::{}", signature.ident),
            None => signature.ident.to_string(),
        };
        let around = self.function.replace(name);
        self.body(signature, block);
        visit::visit_block(self, block);
        self.function = around;
    }

    fn binary(&mut self, node: &syn::ExprBinary) {
        let Some((operator, kind)) = operator(&node.op) else {
            return;
        };
        if matches!(kind, Kind::Logic(_)) && (has_let(&node.left) || has_let(&node.right)) {
            return;
        }
        let text = excerpt(&shown(node));
        let named = |other: &str| format!("replace `{operator}` with `{other}` in `{text}`");
        let others = kind.others();
        let alternatives = others
            .iter()
            .map(|&other| (named(other), other.to_owned()))
            .collect();
        let Some(Point { id, live }) = self.point(node.op.span(), alternatives) else {
            return;
        };
        let (open, close) = point(id);
        let whole = bytes(node);
        let op = node.op.span().byte_range();
        let question = on(live[0].0);
        match kind {
            Kind::Equality(_) => {
                let before = format!("{open}((");
                self.edits
                    .around(&whole, before, format!(") ^ {question}){close}"));
            }
            // Not a = b, the other way round: neither side is written twice, and the right one still
            // runs only where it is asked for.
            Kind::Logic(_) => {
                let after = format!(") ^ {question})) ^ {question}){close}");
                self.edits.around(&whole, format!("{open}(((("), after);
                self.edits
                    .replace(&op, format!(") ^ {question}) {operator} (("));
            }
            Kind::Order(_) => {
                let arms = arms(&live, operator, "*__l", "*__r");
                let after = format!(")) {{ (__l, __r) => {{ {arms} }} }}){close}");
                self.edits
                    .around(&whole, format!("{open}(match (&("), after);
                self.edits.replace(&op, "), &(".to_owned());
            }
            Kind::Number(_) => {
                let arms = arms(&live, operator, "__l", "__r");
                let after = format!(")) {{ (__l, __r) => {{ {arms} }} }}){close}");
                self.edits.around(&whole, format!("{open}(match (("), after);
                self.edits.replace(&op, "), (".to_owned());
            }
            Kind::Assignment(_) => {
                let place = &self.source[bytes(&node.left)];
                let arms = arms(&live, operator, place, "__r");
                let after = format!(") {{ __r => {{ {arms} }} }}){close}");
                let right = bytes(&node.right);
                self.edits.at(whole.start, format!("{open}(match ("));
                self.edits
                    .replace(&(whole.start..right.start), String::new());
                self.edits.behind(right.end, after);
            }
        }
    }

    fn unary(&mut self, node: &syn::ExprUnary) {
        let operator = match node.op {
            UnOp::Not(_) => "!",
            UnOp::Neg(_) => "-",
            _ => return,
        };
        let change = format!("delete `{operator}` in `{}`", excerpt(&shown(node)));
        let alternatives = vec![(change, "__v".to_owned())];
        let Some(Point { id, live }) = self.point(node.span(), alternatives) else {
            return;
        };
        let (open, close) = point(id);
        let arms = choice(&live, &format!("{operator}__v"));
        let op = node.op.span().byte_range();
        let after = format!(") {{ __v => {{ {arms} }} }}){close}");
        self.edits
            .around(&bytes(node), format!("{open}(match ("), after);
        self.edits.replace(&op, String::new());
    }

    /// An arm that another one catches can go; a guard can always or never hold.
    fn arm(&mut self, arm: &syn::Arm, caught: bool) {
        let pattern = excerpt(&shown(&arm.pat));
        let mut alternatives = Vec::new();
        if caught && !matches!(arm.pat, Pat::Wild(_)) {
            alternatives.push((format!("delete the arm `{pattern}`"), "gone".to_owned()));
        }
        let guard = arm.guard.as_ref().map(|(_, guard)| &**guard);
        let guard = guard.filter(|guard| !has_let(guard));
        if let Some(guard) = guard {
            let guard = excerpt(&shown(guard));
            for always in ["true", "false"] {
                let change = format!("replace the guard `{guard}` with `{always}`");
                alternatives.push((change, always.to_owned()));
            }
        } else if arm.guard.is_some() {
            return;
        }
        let Some(Point { id, live }) = self.point(arm.pat.span(), alternatives) else {
            return;
        };
        let (open, close) = point(id);
        let of = |wanted: &str| live.iter().find(|(_, text)| text == wanted);
        let mut before = String::new();
        if let Some((id, _)) = of("gone") {
            before += &format!("!{} && ", on(*id));
        }
        match guard {
            None => {
                let before = before.trim_end_matches(" && ");
                self.edits
                    .at(bytes(&arm.pat).end, format!(" if {open}{before}{close}"));
            }
            Some(guard) => {
                let mut after = ")".to_owned();
                if let Some((id, _)) = of("true") {
                    before += &format!("({} || ", on(*id));
                    after.push(')');
                }
                if let Some((id, _)) = of("false") {
                    before += &format!("!{} && ", on(*id));
                }
                let range = bytes(guard);
                self.edits.around(
                    &range,
                    format!("{open}{before}("),
                    format!("{after}{close}"),
                );
            }
        }
    }
}

impl<'ast> Visit<'ast> for Finder<'_> {
    fn visit_item_fn(&mut self, node: &'ast syn::ItemFn) {
        // A function inside of another has nothing of the type around.
        let within = std::mem::take(&mut self.within);
        self.in_function(&node.sig, &node.attrs, &node.block);
        self.within = within;
    }

    fn visit_impl_item_fn(&mut self, node: &'ast syn::ImplItemFn) {
        self.in_function(&node.sig, &node.attrs, &node.block);
    }

    fn visit_trait_item_fn(&mut self, node: &'ast syn::TraitItemFn) {
        if let Some(block) = &node.default {
            self.in_function(&node.sig, &node.attrs, block);
        }
    }

    fn visit_item_impl(&mut self, node: &'ast syn::ItemImpl) {
        if of_tests(&node.attrs) {
            return;
        }
        let own = shown(&*node.self_ty);
        let within = match &node.trait_ {
            Some((_, path, _)) if path.segments.last().is_some_and(|s| s.ident == "Debug") => {
                return;
            }
            Some((_, path, _)) => format!("{own} as {}", shown(path)),
            None => own,
        };
        self.within.push(within);
        visit::visit_item_impl(self, node);
        self.within.pop();
    }

    fn visit_item_trait(&mut self, node: &'ast syn::ItemTrait) {
        self.within.push(node.ident.to_string());
        visit::visit_item_trait(self, node);
        self.within.pop();
    }

    fn visit_item_mod(&mut self, node: &'ast syn::ItemMod) {
        if !of_tests(&node.attrs) {
            visit::visit_item_mod(self, node);
        }
    }

    fn visit_expr_binary(&mut self, node: &'ast syn::ExprBinary) {
        self.binary(node);
        if is_assignment(&node.op) {
            self.visit_expr(&node.right);
        } else {
            visit::visit_expr_binary(self, node);
        }
    }

    fn visit_expr_unary(&mut self, node: &'ast syn::ExprUnary) {
        self.unary(node);
        visit::visit_expr_unary(self, node);
    }

    fn visit_expr_match(&mut self, node: &'ast syn::ExprMatch) {
        let catches = |arm: &syn::Arm| matches!(arm.pat, Pat::Wild(_)) && arm.guard.is_none();
        let caught = node.arms.iter().any(catches);
        self.visit_expr(&node.expr);
        for arm in &node.arms {
            self.arm(arm, caught);
            if let Some((_, guard)) = &arm.guard {
                self.visit_expr(guard);
            }
            self.visit_expr(&arm.body);
        }
    }

    fn visit_expr_repeat(&mut self, node: &'ast syn::ExprRepeat) {
        self.visit_expr(&node.expr);
    }

    // What must be known when compiling.
    fn visit_item_const(&mut self, _: &'ast syn::ItemConst) {}
    fn visit_item_static(&mut self, _: &'ast syn::ItemStatic) {}
    fn visit_impl_item_const(&mut self, _: &'ast syn::ImplItemConst) {}
    fn visit_trait_item_const(&mut self, _: &'ast syn::TraitItemConst) {}
    fn visit_item_enum(&mut self, _: &'ast syn::ItemEnum) {}
    fn visit_expr_const(&mut self, _: &'ast syn::ExprConst) {}
    fn visit_type(&mut self, _: &'ast syn::Type) {}
    fn visit_generic_argument(&mut self, _: &'ast syn::GenericArgument) {}
    fn visit_pat(&mut self, _: &'ast Pat) {}
    fn visit_attribute(&mut self, _: &'ast Attribute) {}
}

/// The operators that one can be taken for.
#[derive(Clone, Copy)]
enum Kind {
    Equality(&'static [&'static str]),
    Logic(&'static [&'static str]),
    Order(&'static [&'static str]),
    Number(&'static [&'static str]),
    Assignment(&'static [&'static str]),
}

impl Kind {
    fn others(self) -> &'static [&'static str] {
        match self {
            Self::Equality(others)
            | Self::Logic(others)
            | Self::Order(others)
            | Self::Number(others)
            | Self::Assignment(others) => others,
        }
    }
}

fn operator(op: &BinOp) -> Option<(&'static str, Kind)> {
    Some(match op {
        BinOp::Eq(_) => ("==", Kind::Equality(&["!="])),
        BinOp::Ne(_) => ("!=", Kind::Equality(&["=="])),
        BinOp::And(_) => ("&&", Kind::Logic(&["||"])),
        BinOp::Or(_) => ("||", Kind::Logic(&["&&"])),
        BinOp::Lt(_) => ("<", Kind::Order(&["==", ">", "<="])),
        BinOp::Gt(_) => (">", Kind::Order(&["==", "<", ">="])),
        BinOp::Le(_) => ("<=", Kind::Order(&[">"])),
        BinOp::Ge(_) => (">=", Kind::Order(&["<"])),
        BinOp::Add(_) => ("+", Kind::Number(&["-", "*"])),
        BinOp::Sub(_) => ("-", Kind::Number(&["+", "/"])),
        BinOp::Mul(_) => ("*", Kind::Number(&["+", "/"])),
        BinOp::Div(_) => ("/", Kind::Number(&["%", "*"])),
        BinOp::Rem(_) => ("%", Kind::Number(&["/", "+"])),
        BinOp::BitAnd(_) => ("&", Kind::Number(&["|", "^"])),
        BinOp::BitOr(_) => ("|", Kind::Number(&["&", "^"])),
        BinOp::BitXor(_) => ("^", Kind::Number(&["&", "|"])),
        BinOp::Shl(_) => ("<<", Kind::Number(&[">>"])),
        BinOp::Shr(_) => (">>", Kind::Number(&["<<"])),
        BinOp::AddAssign(_) => ("+=", Kind::Assignment(&["-=", "*="])),
        BinOp::SubAssign(_) => ("-=", Kind::Assignment(&["+=", "/="])),
        BinOp::MulAssign(_) => ("*=", Kind::Assignment(&["+=", "/="])),
        BinOp::DivAssign(_) => ("/=", Kind::Assignment(&["%=", "*="])),
        BinOp::RemAssign(_) => ("%=", Kind::Assignment(&["/=", "+="])),
        BinOp::BitAndAssign(_) => ("&=", Kind::Assignment(&["|=", "^="])),
        BinOp::BitOrAssign(_) => ("|=", Kind::Assignment(&["&=", "^="])),
        BinOp::BitXorAssign(_) => ("^=", Kind::Assignment(&["&=", "|="])),
        BinOp::ShlAssign(_) => ("<<=", Kind::Assignment(&[">>="])),
        BinOp::ShrAssign(_) => (">>=", Kind::Assignment(&["<<="])),
        _ => return None,
    })
}

fn is_assignment(op: &BinOp) -> bool {
    matches!(operator(op), Some((_, Kind::Assignment(_))))
}

fn arms(live: &[(Id, String)], operator: &str, left: &str, right: &str) -> String {
    let with = |operator: &str| format!("{left} {operator} {right}");
    let others: Vec<_> = live.iter().map(|(id, op)| (*id, with(op))).collect();
    choice(&others, &with(operator))
}

/// Whether a chain of conditions has a `let` in it; such a chain can be joined by `&&` alone.
fn has_let(expr: &Expr) -> bool {
    match expr {
        Expr::Let(_) => true,
        Expr::Binary(binary) => has_let(&binary.left) || has_let(&binary.right),
        _ => false,
    }
}

/// `#[test]`, `#[cfg(test)]` and what is like them.
fn of_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let text = shown(attribute);
        attribute.path().is_ident("test") || text.starts_with("#[cfg(test)")
    })
}

fn bytes(syntax: &impl Spanned) -> Range<usize> {
    syntax.span().byte_range()
}

/// Enough of an expression to tell it from its neighbours.
fn excerpt(text: &str) -> String {
    const MOST: usize = 60;
    match text.char_indices().nth(MOST) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests;
