// SPDX-License-Identifier: Apache-2.0
//! A function of the arithmetic, as a profile has it.

use std::fmt;

/// A function of the arithmetic, as a profile has it.
pub struct Function {
    /// Its name.
    pub name: &'static str,
    /// How often one private operation calls it.
    pub calls: u64,
    /// Calls it so often with numbers of the operation's size, and nothing else.
    pub repeat: Box<dyn FnMut(u64) + Send>,
}

impl fmt::Debug for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Function").field("name", &self.name).field("calls", &self.calls).finish()
    }
}
