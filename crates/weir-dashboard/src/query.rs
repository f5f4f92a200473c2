//! The parts of a request beside its path that the dashboard uses: values of a query or a form, the language that a
//! browser prefers, and the host that the request is for. Pure.

use weir_proto::http1::is_address_or_localhost;
use weir_report::Language;

/// The bytes that a part of an address stands for; `None` where an escape is cut short.
pub(crate) fn decoded(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let mut digit = || char::from(rest.next()?).to_digit(16);
        let value = digit()? * 16 + digit()?;
        bytes.push(u8::try_from(value).ok()?);
    }
    Some(bytes)
}

/// The same bytes as a part of an address: everything but unreserved characters in per cent form.
pub(crate) fn encoded(bytes: &[u8]) -> String {
    let one = |byte: &u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => char::from(*byte).to_string(),
        other => format!("%{other:02X}"),
    };
    bytes.iter().map(one).collect()
}

/// The bytes of a value in a query or a form: the first of that name. Browsers write a blank of a form as `+`.
pub(crate) fn value(query: &str, name: &str) -> Option<Vec<u8>> {
    let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    let found = pairs.into_iter().find(|(own, _)| *own == name);
    found.and_then(|(_, value)| decoded(&value.replace('+', "%20")))
}

/// The language of an `Accept-Language` header, or of a locale such as `ko_KR.UTF-8`: the most preferred of ours.
/// Absent if none of ours is in it.
pub fn accepted(header: &str) -> Option<Language> {
    let mut best: Option<(f64, Language)> = None;
    for part in header.split(',') {
        let (tag, parameters) = part.split_once(';').unwrap_or((part, ""));
        let code = tag.trim().split(['-', '_', '.']).next().unwrap_or_default().to_ascii_lowercase();
        let Ok(language) = code.parse::<Language>() else { continue };
        let weight = parameters.trim().strip_prefix("q=").map_or(Some(1.0), |weight| weight.parse().ok());
        let Some(weight) = weight.filter(|weight| *weight > 0.0) else { continue };
        if best.is_none_or(|(most, _)| weight > most) {
            best = Some((weight, language));
        }
    }
    best.map(|(_, language)| language)
}

/// Whether a `Host` header names this machine legitimately: by an address, as `localhost`, or by an allowed name.
/// Requests of a page whose foreign name was made to resolve to this address have that name.
pub(crate) fn is_own_host(header: &str, allowed: &[String]) -> bool {
    let name = header.rsplit_once(':').map_or(header, |(name, _)| name);
    is_address_or_localhost(header.as_bytes()) || allowed.iter().any(|own| own.eq_ignore_ascii_case(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_an_address_comes_back_whatever_bytes_it_has() {
        let all: Vec<u8> = (0..=255).collect();
        assert_eq!(decoded(&encoded(&all)), Some(all));
        assert_eq!(decoded("a%2Fb%2e").as_deref(), Some(&b"a/b."[..]));
        for cut in ["%", "a%2", "%zz", "%+1"] {
            assert_eq!(decoded(cut), None, "{cut}");
        }
    }

    #[test]
    fn the_first_value_of_a_name_counts() {
        assert_eq!(value("lang=ko&study=a%20b&lang=zh", "lang").as_deref(), Some(&b"ko"[..]));
        assert_eq!(value("lang=ko&study=a%20b", "study").as_deref(), Some(&b"a b"[..]));
        assert_eq!(value("language=ko", "lang"), None);
        assert_eq!(value("a=x+y%2Bz", "a").as_deref(), Some(&b"x y+z"[..]));
    }

    #[test]
    fn the_preferred_language_is_the_one_of_most_weight_that_there_is() {
        for (header, language) in [
            ("ko-KR,ko;q=0.9,en-US;q=0.8", Some(Language::Korean)),
            ("fr,zh-CN;q=0.4,en;q=0.7", Some(Language::English)),
            ("zh-Hant-TW", Some(Language::Chinese)),
            ("en;q=0, ko;q=0.1", Some(Language::Korean)),
            ("ko_KR.UTF-8", Some(Language::Korean)),
            ("C.UTF-8", None),
            ("fr, de;q=0.9, *", None),
            ("ko;q=NaN;;,", None),
            ("", None),
        ] {
            assert_eq!(accepted(header), language, "{header}");
        }
    }

    #[test]
    fn a_host_is_own_by_address_as_localhost_and_by_an_allowed_name() {
        let allowed = ["lab.example".to_owned()];
        for own in
            ["127.0.0.1:3000", "localhost:3000", "LOCALHOST", "[::1]:3000", "192.168.31.10", "Lab.example:80"]
        {
            assert!(is_own_host(own, &allowed), "{own}");
        }
        for foreign in
            ["evil.example:3000", "127.0.0.1.evil.example", "", "[::1", "localhost.evil:3000", "lab.example."]
        {
            assert!(!is_own_host(foreign, &allowed), "{foreign}");
        }
    }
}
