//! Keys of single arms on a command line, beside how they run: process, environment, folder, and the commands before
//! and after.

use toml::{Table, Value};

use super::choice_error::ChoiceError;

/// The key whose entries each have a separate flag.
const ENVIRONMENT: &str = "environment";

/// One key of an arm.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArmKey {
    /// The flag that sets it.
    pub flag: &'static str,
    /// Name of the arm.
    pub arm: String,
    /// The key in a file.
    pub key: &'static str,
    /// Its value.
    pub value: ArmValue,
}

/// The value of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ArmValue {
    /// A text.
    Text(String),
    /// A number.
    Number(u32),
    /// The words of a command.
    Words(Vec<String>),
    /// One entry of a table; several flags may each set another entry.
    Entry(String, Box<ArmValue>),
}

impl From<&ArmValue> for Value {
    fn from(value: &ArmValue) -> Self {
        match value {
            ArmValue::Text(text) => Self::String(text.clone()),
            ArmValue::Number(number) => Self::Integer((*number).into()),
            ArmValue::Words(words) => Self::Array(words.iter().cloned().map(Self::String).collect()),
            ArmValue::Entry(name, value) => {
                Self::Table(Table::from_iter([(name.clone(), Self::from(&**value))]))
            }
        }
    }
}

/// Sets the keys of the arms. In the table that replaces arms if a driver does not run, a missing arm is no error.
pub(super) fn set(arms: &mut [Value], keys: &[ArmKey], is_file: bool) -> Result<(), ChoiceError> {
    let name_of = |arm: &Value| arm.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
    let there: Vec<String> = arms.iter().map(name_of).collect();
    for (place, ArmKey { flag, arm, key, value }) in keys.iter().enumerate() {
        let found = arms.iter_mut().find(|it| name_of(it) == *arm).and_then(Value::as_table_mut);
        let Some(table) = found else {
            match is_file {
                true => return Err(ChoiceError::ArmKey { flag, name: arm.clone(), there }),
                false => continue,
            }
        };
        let is_same = |it: &ArmKey| (&it.arm, it.key) == (arm, *key) && has_one_place(it, value);
        if keys[..place].iter().any(is_same) {
            return Err(ChoiceError::ArmKeyTwice { flag, name: arm.clone() });
        }
        match (table.get_mut(*key), value) {
            // A further entry is added to those of the file.
            (Some(Value::Table(own)), ArmValue::Entry(name, value)) if *key == ENVIRONMENT => {
                own.insert(name.clone(), Value::from(&**value));
            }
            _ => _ = table.insert((*key).to_owned(), Value::from(value)),
        }
    }
    Ok(())
}

/// Whether a value would replace an earlier one.
fn has_one_place(earlier: &ArmKey, value: &ArmValue) -> bool {
    match (&earlier.value, value) {
        (ArmValue::Entry(one, _), ArmValue::Entry(other, _)) if earlier.key == ENVIRONMENT => one == other,
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arms() -> Vec<Value> {
        let text = "[[arm]]\nname = \"a\"\nenvironment = { LANG = \"C\" }\n[[arm]]\nname = \"b\"\n";
        let study: Table = text.parse().expect("it is TOML");
        study["arm"].as_array().expect("a list").clone()
    }

    fn variable(arm: &str, name: &str, value: &str) -> ArmKey {
        let value = ArmValue::Entry(name.to_owned(), Box::new(ArmValue::Text(value.to_owned())));
        ArmKey { flag: "--arm-env", arm: arm.to_owned(), key: "environment", value }
    }

    #[test]
    fn keys_stand_in_their_arm_and_variables_beside_those_of_the_file() {
        let mut arms = arms();
        let pid = ArmKey { flag: "--arm-pid", arm: "b".to_owned(), key: "pid", value: ArmValue::Number(7) };
        let keys = [variable("a", "X", "1"), variable("a", "LANG", "ko"), pid];
        set(&mut arms, &keys, true).expect("they are there");
        let own = &arms[0]["environment"];
        assert_eq!((own["X"].as_str(), own["LANG"].as_str()), (Some("1"), Some("ko")));
        assert_eq!(arms[1]["pid"].as_integer(), Some(7));
        assert!(arms[1].get("environment").is_none());
    }

    #[test]
    fn an_arm_that_is_not_there_and_a_key_that_is_given_twice_are_mistakes() {
        let unknown = set(&mut arms(), &[variable("other", "X", "1")], true);
        let error = unknown.expect_err("there is none").to_string();
        for words in ["--arm-env other", "no arm of that name", "a, b"] {
            assert!(error.contains(words), "{error}");
        }
        assert_eq!(set(&mut arms(), &[variable("c", "X", "1")], false), Ok(()));
        let twice = [variable("a", "X", "1"), variable("a", "X", "2")];
        let error = set(&mut arms(), &twice, true).expect_err("twice").to_string();
        assert!(error.contains("--arm-env a") && error.contains("twice"), "{error}");
        assert_eq!(set(&mut arms(), &[variable("a", "X", "1"), variable("b", "X", "2")], true), Ok(()));
    }
}
