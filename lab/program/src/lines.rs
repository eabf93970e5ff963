// SPDX-License-Identifier: Apache-2.0
//! Sentences below a table.

/// Columns.
const WIDTH: usize = 100;

/// Lines of a limited width, the first one marked.
pub(crate) fn wrapped(sentence: &str) -> String {
    broken("-", "  ", sentence)
}

/// A text with its sentences in lines of a limited width. A table's cells are blanks apart: it stays as it is.
pub(crate) fn flowing(text: &str) -> String {
    let is_table = |line: &str| line.trim_start().contains("  ");
    let flow = |line: &str| match line.chars().count() > WIDTH && !is_table(line) {
        true => broken("", "", line),
        false => format!("{line}\n"),
    };
    text.lines().map(flow).collect()
}

fn broken(first: &str, indent: &str, sentence: &str) -> String {
    let mut lines = vec![first.to_owned()];
    for word in sentence.split_ascii_whitespace() {
        let line = lines.last_mut().filter(|line| line.chars().count() + word.len() < WIDTH);
        match line {
            Some(line) => {
                line.push_str(if line.is_empty() { "" } else { " " });
                line.push_str(word);
            }
            None => lines.push(format!("{indent}{word}")),
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
    fn sentences_flow_and_tables_stay() {
        let (sentence, row) = ("word ".repeat(30), "a cell  ".repeat(20));
        let text = flowing(&format!("{sentence}\n{row}\nshort\n"));
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 4, "{text}");
        assert!(lines[..2].iter().all(|line| line.len() < WIDTH && line.starts_with("word")));
        assert_eq!(lines[2..], [row.as_str(), "short"]);
    }

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
