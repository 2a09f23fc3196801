//! What a language model is asked, from files: several choices of which one is right, a prompt with an answer, or a text
//! that it reads. The prompt, and the text, may be a conversation.

use std::path::Path;

use serde_json::{Map, Value as Json};

use crate::data::DataError;
use crate::data::encode::tokenizer::chat::Conversation;
use crate::data::read::text::unix_lines;
use crate::show::{listed, plain_io_error};
use crate::spec::data::DataKind;
use crate::spec::plain_file;

/// The most bytes of a file of questions.
const MOST_BYTES: u64 = 1 << 30;
/// Names of the text before a choice or an answer.
const CONTEXTS: [&str; 5] = ["context", "ctx", "prompt", "question", "query"];
/// Names of the choices.
const CHOICES: [&str; 3] = ["choices", "endings", "options"];
/// Names of the right choice, or of the answer.
const ANSWERS: [&str; 5] = ["answer", "answerKey", "label", "gold", "target"];

/// Names of a text that is read.
const TEXTS: [&str; 3] = ["text", "content", "document"];
/// Names of a conversation.
const MESSAGES: [&str; 2] = ["messages", "conversation"];

/// A question.
#[derive(Clone, Debug, PartialEq)]
pub struct Question {
    /// The line of the file.
    pub line: u64,
    /// The text before a choice or an answer, or the one that is read.
    pub context: Context,
    /// What is asked.
    pub kind: QuestionKind,
}

/// A text, or a conversation that a chat template writes as one.
#[derive(Clone, Debug, PartialEq)]
pub enum Context {
    /// A text as it is.
    Text(String),
    /// A conversation.
    Chat(Conversation),
}

/// What is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QuestionKind {
    /// The most probable choice.
    Choice {
        /// The texts to choose from.
        choices: Vec<String>,
        /// The right one.
        right: usize,
    },
    /// A text that continues the context.
    Answer(String),
    /// How probable the text is: all of it, or what the assistant wrote.
    Text,
}

impl QuestionKind {
    /// What the questions of a file have in common.
    fn name(&self) -> &'static str {
        match self {
            Self::Choice { .. } => "choices",
            Self::Answer(_) => "an answer",
            Self::Text => "only a text",
        }
    }
}

/// The column of running text that a model was trained on, which rows may have too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextColumn<'a> {
    /// Its name.
    pub name: &'a str,
    /// Whether it holds conversations.
    pub is_chat: bool,
}

/// The questions of a file of JSON lines, or of a CSV file with a header: all with choices, all with an answer, or all
/// with only a text. Which of both it is follows from `kind`, or from the name of the file. A `.txt` file is one text.
/// Texts and conversations may be under the names of `columns`, too.
///
/// # Errors
/// If the file cannot be read, or a row is not a question.
pub fn read(
    path: &Path,
    kind: Option<DataKind>,
    columns: &[TextColumn<'_>],
) -> Result<Vec<Question>, DataError> {
    let shown = path.display();
    let unreadable = |reason: String| DataError::new(format!("cannot read `{shown}`: {reason}"));
    let bytes = plain_file::read(path, MOST_BYTES);
    let bytes = bytes.map_err(|e| unreadable(plain_io_error(&e)).help("check the path"))?;
    let Some(bytes) = bytes else {
        let reason = format!("it has more than {} MiB", MOST_BYTES >> 20);
        return Err(unreadable(reason).help("divide it into several files"));
    };
    let text = String::from_utf8(bytes).map_err(|e| {
        let at = e.utf8_error().valid_up_to();
        let line = 1 + e.as_bytes()[..at].iter().filter(|b| **b == b'\n').count();
        unreadable(format!("line {line} is not UTF-8")).help("save the file as UTF-8")
    })?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    let is_named = |ending: &str| {
        let own = path.extension();
        own.is_some_and(|own| own.eq_ignore_ascii_case(ending))
    };
    if kind.map_or(is_named("txt"), |kind| kind == DataKind::Text) {
        if text.trim().is_empty() {
            let error = DataError::new(format!("`{shown}` has no text"));
            return Err(error.help("check the path"));
        }
        return Ok(vec![Question {
            line: 1,
            context: Context::Text(unix_lines(text).into_owned()),
            kind: QuestionKind::Text,
        }]);
    }
    let rows = if kind.map_or(is_named("csv"), |kind| kind == DataKind::Csv) {
        of_csv(text)
    } else {
        of_lines(text)
    };
    let place = |line: u64, wrong: Wrong| {
        let error = DataError::new(format!("`{shown}:{line}`: {}", wrong.0));
        error.help(wrong.1)
    };
    let rows = rows.map_err(|(line, wrong)| place(line, wrong))?;
    let questions = rows.into_iter();
    let questions = questions
        .map(|(line, row)| question(line, &row, columns).map_err(|wrong| place(line, wrong)));
    let questions = questions.collect::<Result<Vec<_>, _>>()?;
    let Some(first) = questions.first() else {
        let error = DataError::new(format!("`{shown}` has no questions"));
        return Err(error.help("write one question per row"));
    };
    let differs = |question: &&Question| question.kind.name() != first.kind.name();
    if let Some(other) = questions.iter().find(differs) {
        let reason = format!(
            "the row has {}, but earlier ones have {}",
            other.kind.name(),
            first.kind.name()
        );
        let wrong = Wrong(
            reason,
            "put questions with choices, questions with an answer, and texts into files of their own",
        );
        return Err(place(other.line, wrong));
    }
    Ok(questions)
}

/// What is wrong with a row, and what to do.
struct Wrong(String, &'static str);

/// Rows with the number of the line of each.
type Rows = Result<Vec<(u64, Map<String, Json>)>, (u64, Wrong)>;

fn of_lines(text: &str) -> Rows {
    const HELP: &str = "write one JSON object per line, such as {\"context\": \"The sky is\", \"choices\": [\"blue\", \"loud\"], \"answer\": 0}";
    let lines = text.lines().zip(1u64..);
    let lines = lines.filter(|(line, _)| !line.trim().is_empty());
    let rows = lines.map(|(line, number)| match serde_json::from_str(line) {
        Ok(Json::Object(row)) => Ok((number, row)),
        Ok(_) => Err((number, Wrong("expected a JSON object".into(), HELP))),
        Err(error) => {
            let message = format!("invalid JSON at column {}", error.column());
            Err((number, Wrong(message, HELP)))
        }
    });
    rows.collect()
}

/// Columns whose names begin with `choice` are the choices, in their order.
fn of_csv(text: &str) -> Rows {
    const HELP: &str = "write a header such as `context,choice_1,choice_2,answer`, and as many cells in each row; quote cells with commas";
    let mut reader = csv::ReaderBuilder::new().from_reader(text.as_bytes());
    let wrong = |error: &csv::Error| {
        let line = error.position().map_or(1, csv::Position::line);
        (
            line,
            Wrong(
                "the row has another number of cells than the header".into(),
                HELP,
            ),
        )
    };
    let header = reader.headers().map_err(|e| wrong(&e))?.clone();
    let mut rows = Vec::new();
    for record in reader.records() {
        let record = record.map_err(|e| wrong(&e))?;
        let line = record.position().map_or(1, csv::Position::line);
        let (mut row, mut choices) = (Map::new(), Vec::new());
        for (name, cell) in header.iter().map(str::trim).zip(&record) {
            if !name.to_ascii_lowercase().starts_with("choice") {
                row.insert(name.to_owned(), Json::from(cell));
            } else if !cell.is_empty() {
                // A question may have fewer choices than others.
                choices.push(Json::from(cell));
            }
        }
        if !choices.is_empty() {
            row.insert(CHOICES[0].to_owned(), Json::from(choices));
        }
        rows.push((line, row));
    }
    Ok(rows)
}

fn question(
    line: u64,
    row: &Map<String, Json>,
    columns: &[TextColumn<'_>],
) -> Result<Question, Wrong> {
    let find = |names: &[&str]| {
        let mut found = names.iter().filter_map(|name| row.get(*name));
        found.find(|value| !value.is_null())
    };
    let no_context = || {
        Wrong(
            format!(
                "no text before the answer was found under {}, and no conversation under {}",
                listed(CONTEXTS),
                listed(MESSAGES)
            ),
            "name it `context`; a text that is read as it is is named `text`",
        )
    };
    let mut listing = find(&CHOICES);
    let answer = find(&ANSWERS);
    let own = |is_chat: bool| {
        let names = columns.iter().filter(|column| column.is_chat == is_chat);
        let names: Vec<&str> = names.map(|column| column.name).collect();
        find(&names)
    };
    let (context, may_be_read) = if let Some(messages) = find(&MESSAGES).or_else(|| own(true)) {
        (Context::Chat(conversation(messages, row)?), true)
    } else if let Some(mut context) = find(&CONTEXTS) {
        // The layout of ARC's own files.
        if let Json::Object(inner) = context {
            listing = inner.get("choices").or(listing);
            context = inner.get("stem").ok_or_else(no_context)?;
        }
        let context = context.as_str().ok_or_else(no_context)?.to_owned();
        (Context::Text(context), false)
    } else {
        let text = find(&TEXTS).or_else(|| own(false));
        if text.is_some() && (listing.is_some() || answer.is_some()) {
            return Err(Wrong(
                "the row has a text that is read as it is, and choices or an answer".into(),
                "name a text before an answer `context`; leave out the answer of a text that is read",
            ));
        }
        let text = text.and_then(Json::as_str).ok_or_else(no_context)?;
        (Context::Text(text.to_owned()), true)
    };
    if may_be_read && listing.is_none() && answer.is_none() {
        return Ok(Question {
            line,
            context,
            kind: QuestionKind::Text,
        });
    }
    let answer = answer.ok_or_else(|| {
        Wrong(
            format!("no right answer was found under {}", listed(ANSWERS)),
            "name it `answer`",
        )
    })?;
    let Some(listing) = listing else {
        let answer = answer.as_str().map(str::to_owned).or_else(|| {
            let number = answer.as_number()?;
            Some(number.to_string())
        });
        let is_line = |answer: &String| answer.trim().lines().count() == 1;
        let asked = answer
            .filter(is_line)
            .map(QuestionKind::Answer)
            .ok_or_else(|| {
                Wrong(
                    "the answer is not a text of one line".into(),
                    "write the text of the answer, or list `choices`",
                )
            })?;
        return Ok(Question {
            line,
            context,
            kind: asked,
        });
    };
    let (choices, labels) = choices(listing).ok_or_else(|| {
        Wrong(
            "the choices are not a list of at least two texts".into(),
            "write a list of texts, such as [\"blue\", \"loud\"]",
        )
    })?;
    let right = right(answer, &choices, &labels).ok_or_else(|| {
        Wrong(
            format!(
                "the answer {answer} is none of the {} choices",
                choices.len()
            ),
            "write the number of the right choice from 0, its label, or its text",
        )
    })?;
    let asked = QuestionKind::Choice { choices, right };
    Ok(Question {
        line,
        context,
        kind: asked,
    })
}

/// The conversation of a row, which in CSV files is written as JSON.
fn conversation(messages: &Json, row: &Map<String, Json>) -> Result<Conversation, Wrong> {
    let parsed = match messages {
        Json::String(text) => Conversation::parse(text),
        messages => {
            let mut whole = Map::new();
            whole.insert(MESSAGES[0].to_owned(), messages.clone());
            for key in ["tools", "documents"] {
                if let Some(value) = row.get(key).filter(|value| !value.is_null()) {
                    whole.insert(key.to_owned(), value.clone());
                }
            }
            Conversation::of(Json::Object(whole))
        }
    };
    parsed.map_err(|reason| {
        Wrong(
            format!("the conversation cannot be used: {reason}"),
            "write a list of messages, such as [{\"role\": \"user\", \"content\": \"Hello\"}]",
        )
    })
}

/// The texts and the labels of choices: a list of texts, of objects with `text` and `label`, or an object with lists of
/// both.
fn choices(listing: &Json) -> Option<(Vec<String>, Vec<String>)> {
    let texts = |of: &Json| -> Option<Vec<String>> {
        let all = of.as_array()?.iter();
        all.map(|text| text.as_str().map(str::to_owned)).collect()
    };
    let (choices, labels) = match listing {
        Json::Object(both) => {
            let labels = both.get("label").map_or(Some(Vec::new()), texts)?;
            (texts(both.get("text")?)?, labels)
        }
        Json::Array(all) if all.iter().all(Json::is_object) => {
            let of = |key: &str| -> Option<Vec<String>> {
                let each = all
                    .iter()
                    .map(|one| one.get(key)?.as_str().map(str::to_owned));
                each.collect()
            };
            (of("text")?, of("label").unwrap_or_default())
        }
        _ => (texts(listing)?, Vec::new()),
    };
    let is_whole = labels.is_empty() || labels.len() == choices.len();
    let has_texts = choices.len() > 1 && choices.iter().all(|text| !text.is_empty());
    (is_whole && has_texts).then_some((choices, labels))
}

/// The right choice: a number is its position from 0; a text is its label, its text, its position, or without labels
/// its letter.
fn right(answer: &Json, choices: &[String], labels: &[String]) -> Option<usize> {
    let within = |at: usize| (at < choices.len()).then_some(at);
    if let Some(at) = answer.as_u64() {
        return within(usize::try_from(at).ok()?);
    }
    let answer = answer.as_str()?.trim();
    let position = |all: &[String]| all.iter().position(|one| one.trim() == answer);
    let letter = || match answer.as_bytes() {
        [letter @ b'A'..=b'Z'] if labels.is_empty() => within(usize::from(letter - b'A')),
        _ => None,
    };
    let number = || within(answer.parse().ok()?);
    let found = position(labels).or_else(|| position(choices));
    found.or_else(number).or_else(letter)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_text(name: &str, text: &str) -> Result<Vec<Question>, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        let shown = format!("{}/", folder.path().display());
        read(&path, None, &[]).map_err(|error| error.to_string().replace(&shown, ""))
    }

    #[test]
    fn layouts_of_known_benchmarks_are_read() {
        let same = [
            r#"{"context": "The sky is", "choices": ["loud", "blue"], "answer": 1}"#,
            r#"{"context": "The sky is", "choices": ["loud", "blue"], "answer": "blue"}"#,
            r#"{"context": "The sky is", "choices": ["loud", "blue"], "answer": "B"}"#,
            r#"{"ind": 4, "ctx": "The sky is", "endings": ["loud", "blue"], "label": "1"}"#,
            r#"{"question": "The sky is", "choices": {"text": ["loud", "blue"], "label": ["1", "2"]}, "answerKey": "2"}"#,
            r#"{"question": {"stem": "The sky is", "choices": [{"text": "loud", "label": "A"}, {"text": "blue", "label": "B"}]}, "answerKey": "B"}"#,
        ];
        let expected = QuestionKind::Choice {
            choices: vec!["loud".into(), "blue".into()],
            right: 1,
        };
        for (found, line) in read_text("a.jsonl", &same.join("\n\n"))
            .unwrap()
            .iter()
            .zip(0..)
        {
            let expected = Question {
                line: 1 + 2 * line,
                context: Context::Text("The sky is".into()),
                kind: expected.clone(),
            };
            assert_eq!(*found, expected);
        }
        let table = "id,context,choice_a,choice_b,choice_c,answer\n7,The sky is,loud,blue,,1\n";
        let found = read_text("a.csv", table).unwrap();
        assert_eq!((found[0].line, &found[0].kind), (2, &expected));
        let found = read_text("a.jsonl", r#"{"prompt": "2 + 2 =", "answer": 4}"#).unwrap();
        assert_eq!(found[0].kind, QuestionKind::Answer("4".into()));
    }

    #[test]
    fn texts_and_conversations_are_read_as_they_are() {
        let chat = r#"{"messages": [{"role": "user", "content": "Hi"}], "tools": null"#;
        for (name, text, is_chat, kind) in [
            ("a.txt", "two\nlines".to_owned(), false, "only a text"),
            (
                "a.jsonl",
                r#"{"text": "two lines", "id": 4}"#.into(),
                false,
                "only a text",
            ),
            ("a.csv", "text\ntwo lines\n".into(), false, "only a text"),
            ("a.jsonl", format!("{chat}}}"), true, "only a text"),
            (
                "a.jsonl",
                format!("{chat}, \"answer\": \"Hello\"}}"),
                true,
                "an answer",
            ),
            (
                "a.jsonl",
                format!("{chat}, \"choices\": [\"a\", \"b\"], \"label\": 1}}"),
                true,
                "choices",
            ),
            (
                "a.csv",
                "messages\n\"[{\"\"role\"\": \"\"user\"\", \"\"content\"\": \"\"Hi\"\"}]\"\n"
                    .into(),
                true,
                "only a text",
            ),
        ] {
            let found = read_text(name, &text).unwrap();
            assert_eq!(
                matches!(found[0].context, Context::Chat(_)),
                is_chat,
                "{text}"
            );
            assert_eq!(found[0].kind.name(), kind, "{text}");
        }
    }

    #[test]
    fn columns_of_the_training_and_its_line_ends_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let columns = [("body", false), ("turns", true)];
        let columns = columns.map(|(name, is_chat)| TextColumn { name, is_chat });
        for (name, text, is_chat) in [
            ("a.jsonl", r#"{"body": "one\ntwo"}"#, false),
            ("a.csv", "body\r\n\"one\ntwo\"\r\n", false),
            ("a.txt", "one\r\ntwo", false),
            (
                "b.jsonl",
                r#"{"turns": [{"role": "user", "content": "Hi"}]}"#,
                true,
            ),
        ] {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            let found = read(&path, None, &columns).unwrap();
            match &found[0].context {
                Context::Text(text) => assert!(!is_chat && text == "one\ntwo", "{text:?}"),
                Context::Chat(_) => assert!(is_chat),
            }
        }
    }

    #[test]
    fn what_is_not_a_question_is_refused_with_its_row() {
        let wrong = [
            ("a.jsonl", "{\"context\": \"x\"\n"),
            ("a.jsonl", "[1]\n"),
            ("a.jsonl", "\n{\"text\": \"x\", \"answer\": \"y\"}\n"),
            ("a.jsonl", "{\"context\": \"x\"}\n"),
            (
                "a.jsonl",
                "{\"context\": \"x\", \"choices\": [\"a\"], \"answer\": 0}\n",
            ),
            (
                "a.jsonl",
                "{\"context\": \"x\", \"choices\": [\"a\", \"b\"], \"answer\": 2}\n",
            ),
            (
                "a.jsonl",
                "{\"context\": \"x\", \"choices\": [\"a\", \"b\"], \"answer\": \"c\"}\n",
            ),
            ("a.jsonl", "{\"context\": \"x\", \"answer\": \"\"}\n"),
            ("a.jsonl", "{\"messages\": [{\"content\": \"x\"}]}\n"),
            (
                "a.jsonl",
                "{\"text\": \"x\"}\n{\"context\": \"x\", \"answer\": \"y\"}\n",
            ),
            ("a.txt", " \n"),
            (
                "a.jsonl",
                "{\"context\": \"x\", \"answer\": \"y\"}\n{\"context\": \"x\", \"choices\": [\"a\", \"b\"], \"answer\": 1}\n",
            ),
            ("a.csv", "context,choice_1,choice_2,answer\nx,a,b\n"),
            ("a.csv", "context,answer\n"),
            ("missing/a.jsonl", ""),
        ];
        let said = wrong.map(|(name, text)| {
            if name.contains('/') {
                read(Path::new(name), None, &[]).unwrap_err().to_string()
            } else {
                read_text(name, text).unwrap_err()
            }
        });
        insta::assert_snapshot!(said.join("\n"));
    }
}
