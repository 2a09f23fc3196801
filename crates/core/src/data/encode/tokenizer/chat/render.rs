//! Templates rendered as the library transformers does: its settings of Jinja, its functions, Python's methods.

use std::fmt;

use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Kwargs, Serde, Value, ValueKind};
use minijinja::{AutoEscape, Environment, Error, ErrorKind, State};
use serde_json::Value as Json;

use super::{ChatTemplate, Conversation, NotMarked, Now, Rendered, python, source};

/// What a template may compute, beyond what its conversation needs: one for each instruction, and for each 64 bytes that
/// it makes. Templates of known models need some thousands.
const FUEL: u64 = 1 << 20;
/// The same for each byte of the conversation.
const FUEL_PER_BYTE: u64 = 16;
/// Bytes of a template: those of current models have at most some tens of KiB.
const MOST: usize = 1 << 20;
/// Bytes of a rendered conversation, beyond what its messages contain.
const MOST_TEXT: usize = 16 << 20;
/// How deeply a template may nest calls; each takes some KiB of the stack.
const DEPTH: usize = 100;
/// The name of the template in the environment, and in messages; and that of the one for conversations with tools.
const NAMES: [&str; 2] = ["chat_template", "tool_use"];
/// The variable with the text around what the assistant wrote.
const MARK: &str = "__mark";
/// The attribute by which namespaces are known.
const NAMESPACE: &str = "__namespace";

/// A compiled template.
pub struct Renderer {
    environment: Environment<'static>,
    special: Vec<(String, Value)>,
    /// Whether each template says what the assistant wrote.
    have_generation: Vec<bool>,
}

impl fmt::Debug for Renderer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Renderer").finish_non_exhaustive()
    }
}

impl Renderer {
    /// Compiles a template. Without a moment, `strftime_now` is not defined, so that the text is always the same.
    ///
    /// # Errors
    /// What is wrong with the template, to follow "the chat template".
    pub fn new(template: &ChatTemplate, now: Option<Now>) -> Result<Self, String> {
        let templates = [Some(&template.text), template.tools.as_ref()]
            .into_iter()
            .flatten();
        if templates.clone().any(|text| text.len() > MOST) {
            return Err(format!("has more than {} KiB", MOST >> 10));
        }
        let mut environment = Environment::new();
        environment.remove_global("debug");
        environment.set_debug(false);
        let syntax = SyntaxConfig::builder()
            .trim_blocks(true)
            .lstrip_blocks(true)
            .build();
        environment.set_syntax(syntax.map_err(|error| shown(&error))?);
        environment.set_auto_escape_callback(|_| AutoEscape::None);
        environment.set_recursion_limit(DEPTH);
        environment.set_unknown_method_callback(method);
        environment.add_function("raise_exception", raise);
        environment.add_filter("tojson", to_json);
        environment.add_filter(source::GENERATION, marked);
        environment.add_filter(source::BOUNDED, bounded);
        environment.add_filter(source::HELD, held);
        environment.add_function("namespace", namespace);
        if let Some(now) = now {
            environment.add_function("strftime_now", move |format: &str| {
                python::strftime(now, format)
                    .map_err(|reason| Error::new(ErrorKind::InvalidOperation, reason))
            });
        }
        let mut have_generation = Vec::new();
        for (text, name) in templates.zip(NAMES) {
            let source = source::changed(text)?;
            environment
                .add_template_owned(name, source.text)
                .map_err(|error| shown(&error))?;
            have_generation.push(source.has_generation);
        }
        let special = template.special.iter();
        let special = special.map(|(name, text)| (name.clone(), Value::from(text.as_str())));
        Ok(Self {
            environment,
            special: special.collect(),
            have_generation,
        })
    }

    /// The template that writes a conversation.
    fn template(&self, conversation: &Conversation) -> usize {
        let has_tools = conversation
            .tools
            .as_ref()
            .is_some_and(|tools| !tools.is_null());
        usize::from(has_tools && self.have_generation.len() > 1)
    }

    /// A conversation as text; with what begins the assistant's next turn if `adds_prompt`.
    ///
    /// # Errors
    /// Why the template refuses it, to follow "the chat template".
    pub fn render(&self, conversation: &Conversation, adds_prompt: bool) -> Result<String, String> {
        let num = conversation.messages.len();
        self.first(conversation, num, adds_prompt, None)
    }

    /// A conversation as text with what the assistant wrote: what `{% generation %}` encloses, or, if the template has
    /// no such block, all that follows the prompt for each of the assistant's messages.
    ///
    /// # Errors
    /// As [`render`](Self::render), or if the turns cannot be told apart.
    pub fn marked(&self, conversation: &Conversation) -> Result<Rendered, NotMarked> {
        let num = conversation.messages.len();
        if self.have_generation[self.template(conversation)] {
            let mark = unused_mark(conversation, &self.special);
            let text = self.first(conversation, num, false, Some(&mark))?;
            return Ok(unmarked(&text, &mark));
        }
        let text = self.first(conversation, num, false, None)?;
        let mut assistant = Vec::new();
        for at in (0..num).filter(|at| conversation.is_of_assistant(*at)) {
            let after = self.first(conversation, at + 1, false, None)?;
            let start = match at {
                // Many templates refuse to write no messages at all.
                0 => {
                    let prompted = self.first(conversation, 1, true, None)?;
                    let prompt = prompted.strip_prefix(&after);
                    prompt.and_then(|prompt| Some(after.find(prompt)? + prompt.len()))
                }
                _ => {
                    let before = self.first(conversation, at, true, None)?;
                    after.starts_with(&before).then_some(before.len())
                }
            };
            let start = start.filter(|_| text.starts_with(&after));
            assistant.push(start.ok_or(NotMarked::Mixed(at + 1))?..after.len());
        }
        Ok(Rendered { text, assistant })
    }

    /// The first messages of a conversation as text.
    fn first(
        &self,
        conversation: &Conversation,
        num: usize,
        adds_prompt: bool,
        mark: Option<&str>,
    ) -> Result<String, String> {
        let messages = &conversation.messages[..num];
        let given = |value: &Option<Json>| {
            value
                .as_ref()
                .map_or(Value::from(()), |value| Value::from(Serde(value)))
        };
        let mut context: Vec<(&str, Value)> = vec![
            ("messages", Value::from(Serde(messages))),
            ("tools", given(&conversation.tools)),
            ("documents", given(&conversation.documents)),
            ("add_generation_prompt", Value::from(adds_prompt)),
            (MARK, Value::from(mark.unwrap_or_default())),
        ];
        let special = self.special.iter();
        context.extend(special.map(|(name, text)| (name.as_str(), text.clone())));
        let size = messages.iter().map(size).sum::<usize>()
            + [&conversation.tools, &conversation.documents]
                .into_iter()
                .flatten()
                .map(size)
                .sum::<usize>();
        // The environment is shared, but what may be computed depends on the conversation.
        let mut environment = self.environment.clone();
        environment.set_fuel(Some(FUEL + FUEL_PER_BYTE * size as u64));
        let template = environment
            .get_template(NAMES[self.template(conversation)])
            .map_err(|error| shown(&error))?;
        let context = Value::from_pairs(context);
        let text = template.render(context).map_err(|error| shown(&error))?;
        if text.len() > MOST_TEXT + 16 * size {
            return Err(format!("writes a text of {} MiB", text.len() >> 20));
        }
        Ok(text)
    }
}

/// Bytes of a value, roughly.
fn size(value: &Json) -> usize {
    match value {
        Json::Array(values) => values.iter().map(size).sum::<usize>() + 8,
        Json::Object(table) => {
            table
                .iter()
                .map(|(key, value)| key.len() + size(value))
                .sum::<usize>()
                + 8
        }
        Json::String(text) => text.len() + 8,
        _ => 8,
    }
}

/// A text that occurs in none of the messages.
fn unused_mark(conversation: &Conversation, special: &[(String, Value)]) -> String {
    // A character that no text contains, and as many of it as needed if one does.
    const SIGN: char = '\u{fdd0}';
    fn longest(value: &Json) -> usize {
        match value {
            Json::Array(values) => values.iter().map(longest).max().unwrap_or(0),
            Json::Object(table) => {
                let each = table
                    .iter()
                    .map(|(key, value)| run(key).max(longest(value)));
                each.max().unwrap_or(0)
            }
            Json::String(text) => run(text),
            _ => 0,
        }
    }
    fn run(text: &str) -> usize {
        let others = text.split(|c| c != SIGN);
        others.map(str::len).max().unwrap_or(0) / SIGN.len_utf8()
    }
    let parts = [&conversation.tools, &conversation.documents];
    let parts = conversation
        .messages
        .iter()
        .chain(parts.into_iter().flatten());
    let of_special = special
        .iter()
        .filter_map(|(_, value)| value.as_str())
        .map(run);
    let most = parts.map(longest).chain(of_special).max().unwrap_or(0);
    SIGN.to_string().repeat(most + 1)
}

/// A text without the marks, and what was between the first and the second of each pair.
fn unmarked(text: &str, mark: &str) -> Rendered {
    let mut rendered = Rendered::default();
    for (at, part) in text.split(mark).enumerate() {
        let start = rendered.text.len();
        rendered.text += part;
        if at % 2 == 1 {
            rendered.assistant.push(start..rendered.text.len());
        }
    }
    rendered
}

fn marked(state: &State<'_, '_>, text: &str) -> String {
    let mark = state.lookup(MARK);
    let mark = mark.as_ref().and_then(Value::as_str).unwrap_or_default();
    format!("{mark}{text}{mark}")
}

fn raise(message: &Value) -> Result<Value, Error> {
    Err(Error::new(
        ErrorKind::InvalidOperation,
        format!("{RAISED}{message}"),
    ))
}

/// Python's methods of texts, lists and tables.
fn method(
    state: &mut State<'_, '_>,
    value: &Value,
    name: &str,
    arguments: &[Value],
) -> Result<Value, Error> {
    /// Digits of a width: more would be made at once.
    const DIGITS: usize = 4;
    let digits = value.as_str().filter(|_| name == "format");
    let digits = digits
        .into_iter()
        .flat_map(|text| text.split(|c: char| !c.is_ascii_digit()));
    if digits.map(str::len).max() > Some(DIGITS) {
        return Err(Error::new(
            ErrorKind::InvalidOperation,
            "`format` has a large width",
        ));
    }
    minijinja_contrib::pycompat::unknown_method_callback(state, value, name, arguments)
}

/// A namespace that is known to be one.
fn namespace(options: Kwargs) -> Result<Value, Error> {
    let pairs = options
        .args()
        .map(|key| Ok((key.to_owned(), options.get::<Value>(key)?)));
    let mut pairs = pairs.collect::<Result<Vec<_>, Error>>()?;
    pairs.push((NAMESPACE.to_owned(), Value::from(true)));
    minijinja::functions::namespace(Some(Value::from_pairs(pairs).into()))
}

/// A value with a name: of bounded size.
fn bounded(state: &State<'_, '_>, value: &Value) -> Result<Value, Error> {
    if !is_namespace(value) {
        held(state, value)?;
    }
    Ok(value.clone())
}

/// The same without namespaces, which could contain themselves.
fn held(state: &State<'_, '_>, value: &Value) -> Result<Value, Error> {
    let mut left = MOST_VALUES;
    walk(value, 0, &mut left)?;
    state.consume_fuel((MOST_VALUES - left) as u64 / 8)?;
    Ok(value.clone())
}

/// Counts the values in a value.
fn walk(value: &Value, depth: usize, left: &mut usize) -> Result<(), Error> {
    let wrong = |what: &str| {
        Err(Error::new(
            ErrorKind::InvalidOperation,
            format!("a variable {what}"),
        ))
    };
    if depth > MOST_DEPTH || *left == 0 {
        return wrong("contains too many values");
    }
    *left -= 1;
    match value.kind() {
        _ if is_namespace(value) => return wrong("contains a namespace"),
        ValueKind::Seq | ValueKind::Iterable => {
            for item in value.try_iter()? {
                walk(&item, depth + 1, left)?;
            }
        }
        ValueKind::Map => {
            for key in value.try_iter()? {
                walk(&value.get_item(&key)?, depth + 1, left)?;
            }
        }
        _ => {}
    }
    Ok(())
}

fn is_namespace(value: &Value) -> bool {
    value.as_object().is_some() && value.get_attr(NAMESPACE).is_ok_and(|mark| mark.is_true())
}

/// Values in a variable.
const MOST_VALUES: usize = 1 << 16;
/// Lists in lists in a variable.
const MOST_DEPTH: usize = 64;

/// What begins the message of a refusal by the template.
const RAISED: &str = "refused: ";

/// Python's `json.dumps`, as transformers defines the filter.
fn to_json(
    state: &State<'_, '_>,
    value: &Value,
    indent: Option<&Value>,
    options: Kwargs,
) -> Result<String, Error> {
    let wrong = |reason: String| Error::new(ErrorKind::InvalidOperation, reason);
    let json = serde_json::to_value(value).map_err(|e| wrong(format!("it is not JSON: {e}")))?;
    let style = python::Style {
        indent: match indent {
            Some(indent) => Some(indent.clone()),
            None => options.get::<Option<Value>>("indent")?,
        }
        .filter(|indent| !indent.is_none())
        .map(|indent| python::indent(&indent))
        .transpose()
        .map_err(wrong)?,
        separators: options.get::<Option<Vec<String>>>("separators")?,
        is_sorted: options.get::<Option<bool>>("sort_keys")?.unwrap_or(false),
        is_ascii: options
            .get::<Option<bool>>("ensure_ascii")?
            .unwrap_or(false),
    };
    options.assert_all_used()?;
    // Indentation grows with the depth, and is made before the engine sees its size.
    let size = style.size(&json, 0);
    state.consume_fuel(size as u64 / 64)?;
    Ok(style.text(&json))
}

/// An error of the library, in one line.
fn shown(error: &Error) -> String {
    let line = error
        .line()
        .map(|line| format!(" in line {line}"))
        .unwrap_or_default();
    let detail = error.detail().unwrap_or_default();
    if let Some(reason) = detail.strip_prefix(RAISED) {
        return format!("refuses the conversation: {reason}");
    }
    match error.kind() {
        ErrorKind::OutOfFuel => format!("takes too many steps or too much memory{line}"),
        ErrorKind::SyntaxError => format!("is not valid{line}: {detail}"),
        ErrorKind::UnknownFunction if detail.contains("strftime_now") => {
            format!("writes the date{line}, so its text would change every day")
        }
        kind if detail.is_empty() => format!("cannot be rendered{line}: {kind}"),
        _ => format!("cannot be rendered{line}: {detail}"),
    }
}
