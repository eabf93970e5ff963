// SPDX-License-Identifier: Apache-2.0
//! What is counted besides calls and operations.

/// Rare events that are counted by themselves.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(u8)]
pub enum Event {
    /// A PIN was right.
    Login,
    /// A PIN was wrong.
    LoginFailure,
    /// A login took the short way for servers that fork.
    FastLogin,
    /// A login could not take the short way although it is configured: the first of a time, one with a
    /// short PIN, or any where the kernel keeps no secrets.
    FastLoginMiss,
    /// A panic was caught at the C edge.
    Panic,
    /// Another provider had to do what the first choice failed at.
    Fallback,
    /// A key moved to another provider.
    Migration,
    /// Memory for secrets could not be locked (a level, not a count).
    MemoryNotLocked,
    /// An operation state was saved or restored.
    OperationState,
    /// A row of a store did not open.
    DamagedRow,
    /// A change had to wait for another process's.
    StoreWait,
    /// Lanes computed several requests side by side.
    LaneBatch,
    /// A request was computed in such a batch: these over the batches is their fill.
    LaneBatched,
    /// A line of the audit log could not be written.
    AuditFailure,
    /// A changed configuration was taken over.
    Reconfigured,
    /// A changed configuration was not, because it is wrong, gone, or could not be logged.
    NotReconfigured,
}

impl Event {
    /// All of them, in the order of the page.
    pub const ALL: &[(Self, &'static str)] = &[
        (Self::Login, "login"),
        (Self::LoginFailure, "login-failure"),
        (Self::FastLogin, "fast-login"),
        (Self::FastLoginMiss, "fast-login-miss"),
        (Self::Panic, "panic"),
        (Self::Fallback, "fallback"),
        (Self::Migration, "migration"),
        (Self::MemoryNotLocked, "memory-not-locked"),
        (Self::OperationState, "operation-state"),
        (Self::DamagedRow, "damaged-row"),
        (Self::StoreWait, "store-wait"),
        (Self::LaneBatch, "lane-batch"),
        (Self::LaneBatched, "lane-batched"),
        (Self::AuditFailure, "audit-failure"),
        (Self::Reconfigured, "reconfigured"),
        (Self::NotReconfigured, "not-reconfigured"),
    ];
}
