//! Patterns of texts, as loose as the reference's.
//!
//! Knows no key: which text is held to which pattern is the tables' business.

/// The reference's pattern is not anchored: some part of the name must be a name of two characters or more.
pub(super) fn has_container_name(text: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
    text.chars()
        .zip(text.chars().skip(1))
        .any(|(first, second)| first.is_ascii_alphanumeric() && is_part(second))
}

/// The words of `pull_policy`, for messages.
pub(super) const PULL_POLICIES: &str =
    "always|never|build|if_not_present|missing|refresh|daily|weekly|every_([0-9]+[wdhms])+";

/// Not anchored either.
pub(super) fn has_pull_policy(text: &str) -> bool {
    const WORDS: &[&str] = &[
        "always",
        "never",
        "build",
        "if_not_present",
        "missing",
        "refresh",
        "daily",
        "weekly",
    ];
    WORDS.iter().any(|word| text.contains(word))
        || text.match_indices("every_").any(|(position, word)| {
            let tail = &text[position + word.len()..];
            let digits = tail.bytes().take_while(u8::is_ascii_digit).count();
            digits > 0 && tail[digits..].starts_with(['w', 'd', 'h', 'm', 's'])
        })
}
