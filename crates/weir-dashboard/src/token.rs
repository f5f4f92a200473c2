//! The token that allows a reader to act: read from a file that only its owner may open, compared in constant time, and
//! never shown.

use std::{
    collections::BTreeSet,
    error::Error,
    fmt,
    fs::{self, File},
    hint::black_box,
    io::{self, Read},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use weir_report::{Language, localized};

/// Shortest token.
pub const TOKEN_BYTES_MIN: usize = 16;

/// Longest token.
pub const TOKEN_BYTES_MAX: usize = 256;

/// A token. It has no text form, so that no message can hold it.
#[derive(Clone)]
pub struct Token(Vec<u8>);

/// Why a file gives no token.
#[derive(Debug)]
pub enum TokenError {
    /// It cannot be read.
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The system's message.
        source: io::Error,
    },
    /// It is a folder, a device or a pipe.
    NoFile(PathBuf),
    /// Others may read or change it.
    OpenToOthers {
        /// The file.
        path: PathBuf,
        /// Its permissions.
        mode: u32,
    },
    /// It is too short to be safe, or too long.
    Length {
        /// The file.
        path: PathBuf,
        /// Characters of the token; for a longer file, as many as were read.
        length: usize,
    },
    /// It has characters that a header cannot carry.
    Characters(PathBuf),
    /// It is long enough, and easy to guess: a repetition, a sequence, or of few characters.
    Weak(PathBuf),
}

impl TokenError {
    /// The error and its remedy. The system's message is quoted as it is.
    pub fn localized(&self, language: Language) -> String {
        let path = self.path().display();
        match self {
            Self::Unreadable { source, .. } => localized!(
                language,
                "--token-file {path}: {source}; make one with `(umask 077; head -c 24 /dev/urandom | base64 > FILE)`",
                "--token-file {path}: {source}. `(umask 077; head -c 24 /dev/urandom | base64 > FILE)`로 만드십시오",
                "--token-file {path}：{source}；可用 `(umask 077; head -c 24 /dev/urandom | base64 > FILE)` 生成",
            ),
            Self::NoFile(_) => localized!(
                language,
                "--token-file {path} is no file; name one that holds the token",
                "--token-file {path}: 일반 파일이 아닙니다. 토큰이 들어 있는 파일을 지정하십시오",
                "--token-file {path} 不是普通文件；请指定存放令牌的文件",
            ),
            Self::OpenToOthers { mode, .. } => localized!(
                language,
                "--token-file {path} is open to others (mode {mode:03o}); run `chmod 600` on it",
                "--token-file {path}: 다른 사용자도 접근할 수 있습니다(권한 {mode:03o}). `chmod 600`으로 권한을 바꾸십시오",
                "--token-file {path} 对其他用户开放（权限 {mode:03o}）；请用 `chmod 600` 修改权限",
            ),
            Self::Length { length, .. } => localized!(
                language,
                "--token-file {path}: the token has {length} characters; write {TOKEN_BYTES_MIN} to {TOKEN_BYTES_MAX}",
                "--token-file {path}: 토큰이 {length}자입니다. {TOKEN_BYTES_MIN}~{TOKEN_BYTES_MAX}자로 쓰십시오",
                "--token-file {path}：令牌有 {length} 个字符；请写 {TOKEN_BYTES_MIN} 到 {TOKEN_BYTES_MAX} 个字符",
            ),
            Self::Characters(_) => localized!(
                language,
                "--token-file {path}: write one line of letters, digits and signs, without blanks",
                "--token-file {path}: 토큰은 영문자, 숫자, 기호로 공백 없이 한 줄에 쓰십시오",
                "--token-file {path}：令牌请写成一行，只用英文字母、数字和符号，不含空格",
            ),
            Self::Weak(_) => localized!(
                language,
                "--token-file {path}: the token repeats itself or has few different characters; make a random one with \
                 `(umask 077; head -c 24 /dev/urandom | base64 > FILE)`",
                "--token-file {path}: 토큰이 반복되거나 서로 다른 문자가 너무 적습니다. `(umask 077; head -c 24 /dev/urandom | base64 > \
                 FILE)`로 무작위 토큰을 만드십시오",
                "--token-file {path}：令牌有重复，或不同的字符太少；请用 `(umask 077; head -c 24 /dev/urandom | base64 > FILE)` \
                 生成随机令牌",
            ),
        }
    }

    fn path(&self) -> &Path {
        match self {
            Self::Unreadable { path, .. }
            | Self::NoFile(path)
            | Self::OpenToOthers { path, .. }
            | Self::Length { path, .. }
            | Self::Characters(path)
            | Self::Weak(path) => path,
        }
    }
}

impl fmt::Display for TokenError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.localized(Language::English))
    }
}

impl Error for TokenError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Unreadable { source, .. } => Some(source),
            Self::NoFile(_)
            | Self::OpenToOthers { .. }
            | Self::Length { .. }
            | Self::Characters(_)
            | Self::Weak(_) => None,
        }
    }
}

impl Token {
    /// The token in a file: its text without blanks and line ends around it.
    pub fn read(path: &Path) -> Result<Self, TokenError> {
        let unreadable = |source| TokenError::Unreadable { path: path.to_owned(), source };
        // It is checked before it is opened: opening a pipe waits for a writer.
        if !fs::metadata(path).map_err(unreadable)?.is_file() {
            return Err(TokenError::NoFile(path.to_owned()));
        }
        let file = File::open(path).map_err(unreadable)?;
        let mode = file.metadata().map_err(unreadable)?.permissions().mode() & 0o777;
        if mode & 0o077 != 0 {
            return Err(TokenError::OpenToOthers { path: path.to_owned(), mode });
        }
        let mut text = Vec::new();
        file.take(2 * TOKEN_BYTES_MAX as u64).read_to_end(&mut text).map_err(unreadable)?;
        let token = text.trim_ascii();
        if !(TOKEN_BYTES_MIN..=TOKEN_BYTES_MAX).contains(&token.len()) {
            return Err(TokenError::Length { path: path.to_owned(), length: token.len() });
        }
        if !token.iter().all(u8::is_ascii_graphic) {
            return Err(TokenError::Characters(path.to_owned()));
        }
        if is_weak(token) {
            return Err(TokenError::Weak(path.to_owned()));
        }
        Ok(Self(token.to_vec()))
    }

    #[cfg(test)]
    pub(crate) fn of_tests(text: &[u8]) -> Self {
        Self(text.to_vec())
    }

    /// Whether this is the token.
    pub(crate) fn is(&self, given: &[u8]) -> bool {
        is_same(&self.0, given)
    }
}

/// Fewest different characters. A random token of the shortest length has more, in any alphabet from hexadecimal on.
const DIFFERENT_MIN: usize = 6;

/// Longest run of neighbouring characters (`abcdef`, `654321`) in a token that is otherwise short.
const RUN_MAX: usize = 6;

/// Whether a token is easy to guess, whatever its length: few different characters, one text or word several times, or
/// a sequence of neighbours with little else.
fn is_weak(token: &[u8]) -> bool {
    let different: BTreeSet<u8> = token.iter().map(u8::to_ascii_lowercase).collect();
    different.len() < DIFFERENT_MIN || is_repetition(token) || has_words_alike(token) || is_sequence(token)
}

/// Whether a text of at most half the length fills the whole.
fn is_repetition(token: &[u8]) -> bool {
    let repeats =
        |period: usize| token.iter().skip(period).zip(token).all(|(later, earlier)| later == earlier);
    (1..=token.len() / 2).any(repeats)
}

/// Whether several words, between signs or digits, are one word.
fn has_words_alike(token: &[u8]) -> bool {
    let words = token.split(|byte| !byte.is_ascii_alphabetic()).filter(|word| word.len() > 2);
    let words: Vec<Vec<u8>> = words.map(<[u8]>::to_ascii_lowercase).collect();
    let different: BTreeSet<&Vec<u8>> = words.iter().collect();
    words.len() > 1 && different.len() * 2 <= words.len()
}

/// Whether all but the shortest length's half are in sequences of neighbours.
fn is_sequence(token: &[u8]) -> bool {
    let steps = token.windows(2).map(|pair| i16::from(pair[1]) - i16::from(pair[0]));
    let (mut run, mut step, mut in_runs) = (1, 0, 0);
    for next in steps.chain([i16::MAX]) {
        if next == step && step.abs() <= 1 {
            run += 1;
            continue;
        }
        if run >= RUN_MAX {
            in_runs += run;
        }
        (run, step) = (2, next);
    }
    token.len().saturating_sub(in_runs) < TOKEN_BYTES_MIN / 2
}

/// Compares in a time that depends only on the length of the given text.
pub(crate) fn is_same(own: &[u8], given: &[u8]) -> bool {
    let mut differs = usize::from(own.len() != given.len());
    for (byte, own) in given.iter().zip(own.iter().cycle()) {
        differs |= usize::from(black_box(byte ^ own));
    }
    black_box(differs) == 0 && !own.is_empty()
}

impl fmt::Debug for Token {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Token")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Different numbers, as many as fill the longest token.
    fn longest() -> String {
        let mut text: String = (0..TOKEN_BYTES_MAX).map(|number| (number * number).to_string()).collect();
        text.truncate(TOKEN_BYTES_MAX);
        text
    }

    #[test]
    fn a_token_that_repeats_itself_or_is_a_sequence_is_weak_at_any_length() {
        for weak in [
            "passwordpassword",
            "password-password-password",
            "Password1password2",
            "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
            "abababababababab",
            "0123456789012345",
            "abcdefghijklmnopqrstuvwxyz",
            "abcdefghijklmnop0123456789",
            "zyxwvutsrqponmlk",
            "123123123123123123123",
        ] {
            assert!(is_weak(weak.as_bytes()), "{weak}");
        }
        for strong in [
            "correct-horse-battery",
            "correct-horse-battery-staple",
            "7f3a09c1d25be846",
            "0f0e1d2c3b4a5968",
            "Zm9vYmFyMTIzNDU2Nzg5MHh5eg==",
            "the-horse-the-battery-9",
        ] {
            assert!(!is_weak(strong.as_bytes()), "{strong}");
        }
        assert!(!is_weak(longest().as_bytes()), "{}", longest());
    }

    fn written(name: &str, text: &str, mode: u32) -> PathBuf {
        let path = std::env::temp_dir().join(format!("weir-token-{name}-{}", std::process::id()));
        fs::write(&path, text).expect("a file can be written");
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("its mode can be set");
        path
    }

    fn read(name: &str, text: &str, mode: u32) -> Result<Token, String> {
        let path = written(name, text, mode);
        let token = Token::read(&path).map_err(|error| error.to_string());
        fs::remove_file(path).expect("it can be removed");
        token
    }

    #[test]
    fn a_token_is_the_text_of_its_file_and_is_never_shown() {
        let token = read("good", "  correct-horse-battery\n", 0o600).expect("a token");
        assert!(token.is(b"correct-horse-battery"));
        for wrong in ["", "c", "correct-horse-batterY", "correct-horse-battery ", "correct-horse-batter"] {
            assert!(!token.is(wrong.as_bytes()), "{wrong:?}");
        }
        assert!(!token.is(b"correct-horse-batterycorrect-horse-battery"));
        assert_eq!(format!("{token:?}"), "Token");
        assert!(read("read-only", &longest(), 0o400).is_ok());
        assert!(read("shortest", "7f3a09c1d25be846", 0o600).is_ok());
    }

    #[test]
    fn what_is_wrong_with_a_file_is_told_in_every_language_with_the_same_way_out() {
        let path = || PathBuf::from("secrets/token");
        let errors: [(TokenError, &[&str]); 6] = [
            (
                TokenError::Unreadable { path: path(), source: io::Error::other("out of luck") },
                &["out of luck", "umask 077"],
            ),
            (TokenError::NoFile(path()), &[]),
            (TokenError::OpenToOthers { path: path(), mode: 0o40 }, &["040", "`chmod 600`"]),
            (TokenError::Length { path: path(), length: 15 }, &["15", "16", "256"]),
            (TokenError::Characters(path()), &[]),
            (TokenError::Weak(path()), &["umask 077"]),
        ];
        for (error, words) in errors {
            let texts = Language::ALL.map(|language| error.localized(language));
            assert_eq!(error.to_string(), texts[0]);
            assert!(texts[0] != texts[1] && texts[1] != texts[2], "{texts:?}");
            for text in texts {
                assert!(text.starts_with("--token-file secrets/token"), "{text}");
                assert!(words.iter().all(|word| text.contains(word)), "{text}");
            }
        }
    }

    #[test]
    fn a_file_that_is_no_good_is_refused_with_the_way_out_and_without_its_text() {
        for (name, text, mode, words) in [
            ("group", "secret-secret-secret", 0o640, "mode 640); run `chmod 600`"),
            ("world", "secret-secret-secret", 0o606, "chmod 600"),
            ("short", "secret-secret-1", 0o600, "has 15 characters; write 16 to 256"),
            ("empty", "", 0o600, "has 0 characters"),
            ("blank", "secret secret secret", 0o600, "without blanks"),
            ("letters", "secret-secret-비밀번호", 0o600, "without blanks"),
            ("weak", "secret-secret-secret", 0o600, "repeats itself or has few"),
        ] {
            let said = read(name, text, mode).expect_err(name);
            assert!(said.starts_with("--token-file ") && said.contains(words), "{said}");
            assert!(!said.contains("secret"), "{said}");
        }
        assert!(read("long", &"x".repeat(TOKEN_BYTES_MAX + 1), 0o600).is_err());
        let said = Token::read(Path::new("/nowhere/at/all")).expect_err("it is not there").to_string();
        assert!(said.contains("umask 077"), "{said}");
        let said = Token::read(Path::new("/dev/null")).expect_err("it is no file").to_string();
        assert!(said.contains("is no file"), "{said}");
    }
}
