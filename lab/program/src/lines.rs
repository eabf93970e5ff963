// SPDX-License-Identifier: Apache-2.0
//! Sentences below a table.

/// Columns.
const WIDTH: usize = 100;

/// Lines of a limited width, the first one marked.
pub(crate) fn wrapped(sentence: &str) -> String {
    let mut lines = vec!["-".to_owned()];
    for word in sentence.split_ascii_whitespace() {
        let line = lines.last_mut().filter(|line| line.chars().count() + word.len() < WIDTH);
        match line {
            Some(line) => {
                line.push(' ');
                line.push_str(word);
            }
            None => lines.push(format!("  {word}")),
        }
    }
    lines.join("\n") + "\n"
}

/// A heading and sentences below it; nothing of none.
pub(crate) fn section(text: &mut String, heading: &str, sentences: &[String]) {
    if !sentences.is_empty() {
        text.push_str(&format!("\n{heading}\n"));
        sentences.iter().for_each(|sentence| text.push_str(&wrapped(sentence)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_sentences_are_wrapped_and_lose_no_word() {
        let sentence = "several words ".repeat(40);
        let text = wrapped(&sentence);
        assert!(text.starts_with("- several"));
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
        assert!(text.lines().skip(1).all(|line| line.starts_with("  ")), "{text}");
        assert_eq!(text.split_ascii_whitespace().count(), 81);
    }

    #[test]
    fn a_heading_without_sentences_is_left_out() {
        let mut text = String::new();
        section(&mut text, "Why", &["because".to_owned()]);
        section(&mut text, "Nothing", &[]);
        assert_eq!(text, "\nWhy\n- because\n");
    }
}
