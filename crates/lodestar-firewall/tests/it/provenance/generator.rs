//! Small worlds: a task, some documents, and arguments of which the label is known by how they were
//! made.

use serde_json::Value;

use super::changes::{
    disguise, encoded, grouped, neighbour, other_value, pieces, same_value, small_change,
};
use super::spelling::{Dice, SORTS, Sort, fresh};

/// What an argument has to be called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Expected {
    Given,
    /// Not trusted; whether it is explained does not matter.
    Untrusted,
    /// Found in one of these documents.
    Read(Vec<usize>),
    /// Put together from two values: found in a document of the first and in one of the second.
    Joined([Vec<usize>; 2]),
    Unknown,
}

#[derive(Debug)]
pub(super) struct Case {
    pub(super) group: &'static str,
    pub(super) argument: Value,
    pub(super) expected: Expected,
}

#[derive(Default)]
pub(super) struct World {
    pub(super) task: String,
    pub(super) documents: Vec<String>,
    /// What stands in each document, without any disguise.
    plain: Vec<String>,
    /// Damaged given values, and the document that each was planted in.
    copies: Vec<(String, usize)>,
    pub(super) cases: Vec<Case>,
}

/// A value that the task gives or a document holds.
struct Planted {
    sort: Sort,
    text: String,
    /// It stands where words run together.
    awkward: bool,
}

const DOCUMENTS: usize = 5;
const PROSE: &[&str] = &[
    "The meeting went well and everybody agreed on the next steps.",
    "Please look at the numbers again before you publish anything.",
    "We will move the launch by two weeks, as discussed with the customer.",
    "Nothing in this section has changed since the last version.",
    "Thanks to all who helped with the migration over the weekend.",
    "The old process stays in place until the new one is tested.",
];
const WORDS: &[&str] = &[
    "mark", "report", "general", "summary", "team", "invoice", "the", "send",
];

impl World {
    pub(super) fn new(seed: u64) -> Self {
        let dice = &mut Dice(seed);
        let mut world = Self::default();
        let given: Vec<Planted> = (0..10).map(|_| world.give(dice)).collect();
        world.prose_of_task(dice);
        world.documents = vec![String::new(); DOCUMENTS];
        world.plain = vec![String::new(); DOCUMENTS];
        let read: Vec<Planted> = (0..12).map(|_| world.plant(dice)).collect();
        for value in &given {
            world.keep(value, dice);
            world.keep(value, dice);
            world.damage(value, dice);
            world.damage(value, dice);
        }
        for pair in given.windows(2) {
            world.join_given(&pair[0], &pair[1], dice);
        }
        for (text, at) in std::mem::take(&mut world.copies) {
            world.case("given, damaged and planted", text, Expected::Read(vec![at]));
        }
        for value in &read {
            world.copy(value, dice);
            world.change(value, dice);
        }
        for pair in read.windows(2) {
            world.join_read(&pair[0], &pair[1], dice);
        }
        for _ in 0..5 {
            let sort = dice.pick(SORTS);
            // Three digits can stand somewhere by chance.
            if sort != Sort::ShortNumber {
                let text = fresh(dice, sort);
                world.case("made up", text, Expected::Unknown);
            }
        }
        world
    }

    fn case(&mut self, group: &'static str, argument: impl Into<Value>, expected: Expected) {
        self.cases.push(Case {
            group,
            argument: argument.into(),
            expected,
        });
    }

    /// Writes a value into the task in a way that gives it.
    fn give(&mut self, dice: &mut Dice) -> Planted {
        let sort = dice.pick(SORTS);
        let text = fresh(dice, sort);
        let apart = [
            "\n- {}\n",
            "\nvalue: {}\n",
            " Use \"{}\" here. ",
            " Take `{}` now. ",
        ];
        let within = [
            " Take {} now. ",
            " Use {}, please. ",
            " It is ({}). ",
            " Is it {}? ",
        ];
        let named = [
            " Delete file {}. ",
            " Close #{} today. ",
            " Use id={} here. ",
            " ID: {}, thanks. ",
        ];
        let awkward = [
            " Is {}'s page up? ",
            " Take it—{}—now. ",
            " Say \"{},\" then. ",
            "\n| to | {} |\n",
            " <b>{}</b> ",
            " Wait for {}... ",
        ];
        let template = match sort {
            Sort::Name => dice.pick(&apart),
            Sort::ShortNumber => dice.pick(&named),
            _ if dice.chance(40) => dice.pick(&awkward),
            _ if dice.chance(3) => dice.pick(&apart),
            _ => dice.pick(&within),
        };
        let awkward = awkward.contains(&template);
        let written = match sort {
            Sort::Iban | Sort::Card if dice.chance(2) => grouped(&text, " "),
            _ => text.clone(),
        };
        self.task.push_str(&template.replace("{}", &written));
        Planted {
            sort,
            text,
            awkward,
        }
    }

    /// Words, counts, dates and prices that give nothing.
    fn prose_of_task(&mut self, dice: &mut Dice) {
        for word in WORDS {
            self.task.push_str(&format!(" Then {word} it again. "));
            self.case("common word", *word, Expected::Untrusted);
        }
        for template in [
            " Read the {} newest ones. ",
            " It is due on 2031-07-{}. ",
            " It was {}% off. ",
            " It took {} minutes. ",
            " We meet at {}:45 sharp. ",
            " Version 7.{}.2 is out. ",
            " See box{}x@corp.example there. ",
        ] {
            let number = 10 + dice.below(89);
            self.task
                .push_str(&template.replace("{}", &number.to_string()));
            let argument = match dice.chance(2) {
                true => Value::from(number),
                false => Value::from(number.to_string()),
            };
            self.case(
                "short number inside something",
                argument,
                Expected::Untrusted,
            );
        }
    }

    /// Writes a value into one or two documents, plainly or in disguise, and something like it into
    /// a third.
    fn plant(&mut self, dice: &mut Dice) -> Planted {
        let sort = dice.pick(SORTS);
        let text = match sort {
            // One digit more than the short numbers that are given.
            Sort::ShortNumber => dice.digits(4),
            _ => fresh(dice, sort),
        };
        let first = dice.below(DOCUMENTS);
        let mut documents = vec![first];
        if dice.chance(4) {
            documents.push((first + 1) % DOCUMENTS);
        }
        for &at in &documents {
            let written = disguise(&text, sort, dice);
            self.write(at, &text, &written, dice);
        }
        if let Some(neighbour) = neighbour(&text, sort, dice) {
            self.write((first + 2) % DOCUMENTS, &neighbour, &neighbour, dice);
        }
        Planted {
            sort,
            text,
            awkward: false,
        }
    }

    fn write(&mut self, document: usize, plain: &str, written: &str, dice: &mut Dice) {
        let prose = dice.pick(PROSE);
        let template = dice.pick(&[
            "see {} now",
            "{}",
            "value: {}",
            "\"key\": \"{}\",",
            "| a | {} |",
        ]);
        let line = template.replace("{}", written);
        self.documents[document].push_str(&format!("{prose}\n{line}\n"));
        self.plain[document].push_str(&format!("{plain}\n"));
    }

    /// The documents in which a piece of a value stands, as anyone can see who reads them plainly.
    fn documents_with(&self, piece: &str) -> Vec<usize> {
        let letters =
            |text: &str| -> String { text.chars().filter(|c| c.is_ascii_alphanumeric()).collect() };
        let piece = letters(piece);
        let values = |at: usize| self.plain[at].lines().map(letters);
        (0..DOCUMENTS)
            .filter(|&at| values(at).any(|value| value.contains(&piece)))
            .collect()
    }

    /// A given value, or another spelling of the same value.
    fn keep(&mut self, value: &Planted, dice: &mut Dice) {
        let argument = same_value(&value.text, value.sort, dice);
        let number = matches!(value.sort, Sort::ShortNumber | Sort::LongNumber) && dice.chance(2);
        let argument = match number {
            true => Value::from(argument.parse::<u64>().unwrap()),
            false => Value::from(argument),
        };
        let group = match (value.awkward, argument == value.text) {
            (true, _) => "given in an awkward place",
            (_, true) => "given, copied",
            (_, false) => "given, other spelling",
        };
        self.case(group, argument, Expected::Given);
    }

    /// A given value, changed into another one.
    fn damage(&mut self, value: &Planted, dice: &mut Dice) {
        let (group, argument) = other_value(&value.text, value.sort, dice);
        // Half of the time the damaged value stands in a document: planted to be taken for the other.
        if argument.len() > 4 && dice.chance(2) {
            let at = dice.below(DOCUMENTS);
            self.write(at, &argument, &argument, dice);
            self.copies.push((argument.clone(), at));
        }
        self.case(group, argument, Expected::Untrusted);
        let middle = value.text.len() / 2;
        if dice.chance(4) && value.text.is_char_boundary(middle) {
            let (left, right) = value.text.split_at(middle);
            self.case("given, split", left, Expected::Untrusted);
            self.case("given, split", right, Expected::Untrusted);
        }
    }

    fn join_given(&mut self, a: &Planted, b: &Planted, dice: &mut Dice) {
        let joint = dice.pick(&[",", ", ", "", " ", "/", "@", "\n", ";"]);
        let joined = format!("{}{joint}{}", a.text, b.text);
        self.case("given, joined", joined, Expected::Untrusted);
    }

    fn copy(&mut self, value: &Planted, dice: &mut Dice) {
        let read = Expected::Read(self.documents_with(&value.text));
        self.case("read, copied", value.text.as_str(), read);
        if let Some((group, argument)) = pieces(&value.text, dice) {
            for piece in argument {
                let documents = self.documents_with(&piece);
                self.case(group, piece, Expected::Read(documents));
            }
        }
    }

    /// A read value after one or two small changes and perhaps an encoding.
    fn change(&mut self, value: &Planted, dice: &mut Dice) {
        if value.sort == Sort::ShortNumber {
            return;
        }
        let (mut group, mut text) = small_change(&value.text, value.sort, dice);
        if dice.chance(3) {
            (_, text) = small_change(&text, Sort::Name, dice);
            group = "read, changed twice";
        }
        if dice.chance(3) {
            (group, text) = encoded(&text, dice);
        }
        let documents = self.documents_with(&value.text);
        self.case(group, text, Expected::Read(documents));
    }

    fn join_read(&mut self, a: &Planted, b: &Planted, dice: &mut Dice) {
        let short = |value: &Planted| value.sort == Sort::ShortNumber;
        let documents = [a, b].map(|value| self.documents_with(&value.text));
        let apart = documents[0].iter().all(|at| !documents[1].contains(at));
        if short(a) || short(b) || !apart {
            return;
        }
        let joint = dice.pick(&[",", ", ", "", " ", "/", "@", "\n", "+"]);
        let joined = format!("{}{joint}{}", a.text, b.text);
        self.case("read, joined from two", joined, Expected::Joined(documents));
    }
}
