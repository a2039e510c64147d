// A search index in Rust: lines are split, words are remembered, and postings
// are never merged.
use std::collections::HashMap;

mod index {
    use super::HashMap;

    #[derive(Default)]
    pub struct Index {
        postings: HashMap<String, Vec<u32>>,
        log: Vec<String>,
    }

    impl Index {
        // The answer: each line is kept although nobody reads it again.
        #[inline(never)]
        pub fn remember_line(&mut self, line: &str) {
            self.log.push(line.to_string());
        }

        #[inline(never)]
        pub fn add_words(&mut self, number: u32, line: &str) {
            for word in line.to_lowercase().split(' ') {
                self.postings.entry(word.to_string()).or_default().push(number);
            }
        }
    }
}

fn main() {
    let mut index = index::Index::default();
    for number in 0..60_000u32 {
        let line = format!(
            "customer {} has ordered {} pieces of article number {} to be sent",
            number % 97, number % 13, number % 211);
        index.add_words(number, &line);
        index.remember_line(&line);
    }
}
