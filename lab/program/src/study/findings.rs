// SPDX-License-Identifier: Apache-2.0
//! What a study has to say.

/// What a study has to say, all of it computed from the experiment's samples.
pub(super) struct Findings {
    /// Tables, each with its heading.
    pub(super) tables: String,
    /// What was measured by others, then.
    pub(super) sun: Vec<String>,
    /// What changed what, by verdict; an effect that is not there is said to be absent.
    pub(super) effects: Vec<String>,
    /// Why: two sentences.
    pub(super) reason: [String; 2],
}
