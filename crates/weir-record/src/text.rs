//! Sentences of the author of a study.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A sentence of the author of the study: in English, and in the languages it was translated into. Stored as a plain
/// text where there is none, as all were before there were translations.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(from = "StoredText", into = "StoredText")]
pub struct Text {
    /// In English.
    pub en: String,
    /// In Korean.
    pub ko: Option<String>,
    /// In Chinese.
    pub zh: Option<String>,
}

impl Text {
    /// Whether it says nothing.
    pub fn is_empty(&self) -> bool {
        self.en.is_empty()
    }
}

impl From<&str> for Text {
    fn from(en: &str) -> Self {
        Self { en: en.to_owned(), ko: None, zh: None }
    }
}

impl From<String> for Text {
    fn from(en: String) -> Self {
        Self { en, ko: None, zh: None }
    }
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
enum StoredText {
    Plain(String),
    Translated {
        en: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ko: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        zh: Option<String>,
    },
}

impl From<StoredText> for Text {
    fn from(stored: StoredText) -> Self {
        match stored {
            StoredText::Plain(en) => Self::from(en),
            StoredText::Translated { en, ko, zh } => Self { en, ko, zh },
        }
    }
}

impl From<Text> for StoredText {
    fn from(text: Text) -> Self {
        let Text { en, ko, zh } = text;
        if ko.is_none() && zh.is_none() { Self::Plain(en) } else { Self::Translated { en, ko, zh } }
    }
}
