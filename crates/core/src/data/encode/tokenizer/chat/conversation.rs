//! The messages of a conversation.

use serde_json::{Map, Value as Json};

/// The names of a message's reasoning; the first is the one that templates read.
const REASONING: [&str; 3] = ["reasoning_content", "thinking", "reasoning"];

/// A conversation: its messages, and the tools that it may use.
#[derive(Clone, Debug, PartialEq)]
pub struct Conversation {
    /// The messages, each a table with a `role`.
    pub messages: Vec<Json>,
    /// The tools, as JSON schemas.
    pub tools: Option<Json>,
    /// Documents to answer from.
    pub documents: Option<Json>,
}

impl Conversation {
    /// A conversation in JSON: a list of messages, or a table with `messages`, and perhaps `tools` and `documents`.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(text: &str) -> Result<Self, String> {
        let value = serde_json::from_str(text).map_err(|e| format!("it is not JSON: {e}"))?;
        Self::of(value)
    }

    /// The same for parsed JSON.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn of(value: Json) -> Result<Self, String> {
        let (messages, mut rest) = match value {
            Json::Array(messages) => (messages, Map::new()),
            Json::Object(mut table) => match table.remove("messages") {
                Some(Json::Array(messages)) => (messages, table),
                Some(_) => return Err("`messages` is not a list".to_owned()),
                None => return Err("it has no `messages`".to_owned()),
            },
            _ => return Err("it is not a list of messages".to_owned()),
        };
        if messages.is_empty() {
            return Err("it has no messages".to_owned());
        }
        let messages = messages.into_iter().zip(1..);
        let messages = messages.map(|(message, number)| {
            of_message(message).map_err(|reason| format!("message {number} {reason}"))
        });
        let mut part = |name: &str| rest.remove(name).filter(|value| !value.is_null());
        Ok(Self {
            messages: messages.collect::<Result<_, _>>()?,
            tools: part("tools"),
            documents: part("documents"),
        })
    }

    /// Whether the assistant wrote a message.
    pub fn is_of_assistant(&self, at: usize) -> bool {
        let message = self.messages.get(at);
        message.is_some_and(|message| message["role"] == "assistant")
    }
}

/// A message without keys that are null, as templates expect it.
fn of_message(message: Json) -> Result<Json, String> {
    let Json::Object(mut message) = message else {
        return Err("is not a table".to_owned());
    };
    message.retain(|_, value| !value.is_null());
    if !message.get("role").is_some_and(Json::is_string) {
        return Err("has no `role`, such as \"user\" or \"assistant\"".to_owned());
    }
    let reasoning = REASONING.into_iter().find_map(|key| message.get(key));
    if let Some(reasoning) = reasoning.cloned() {
        message.insert("reasoning_content".to_owned(), reasoning.clone());
        message.entry("thinking").or_insert(reasoning);
    }
    Ok(Json::Object(message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conversations_are_lists_of_messages() {
        let wrong = |text: &str| Conversation::parse(text).unwrap_err();
        assert!(wrong("[").starts_with("it is not JSON"));
        assert_eq!(wrong("3"), "it is not a list of messages");
        assert_eq!(wrong("[]"), "it has no messages");
        assert_eq!(wrong("{}"), "it has no `messages`");
        assert_eq!(wrong(r#"{"messages": 3}"#), "`messages` is not a list");
        assert_eq!(wrong("[3]"), "message 1 is not a table");
        let no_role = r#"[{"role": "user", "content": "a"}, {"content": "b"}]"#;
        assert!(wrong(no_role).starts_with("message 2 has no `role`"));
        let text = r#"{"messages": [{"role": "assistant", "content": null, "thinking": "hm"}], "tools": null}"#;
        let found = Conversation::parse(text).unwrap();
        let message = r#"{"role":"assistant","thinking":"hm","reasoning_content":"hm"}"#;
        assert_eq!(found.messages[0].to_string(), message);
        assert!(found.tools.is_none() && found.is_of_assistant(0) && !found.is_of_assistant(1));
    }
}
