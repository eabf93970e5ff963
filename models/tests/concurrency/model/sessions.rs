// SPDX-License-Identifier: Apache-2.0
//! Sessions, logins, and the token as a whole.

use super::{Login, NO_LOGIN, NO_SESSION, Process, Progress, Session, Stage, State, Step, Thing};
use crate::history::Answer;
use metaslot_ck::Error;

impl State {
    pub(super) fn open(&self, process: u8, write: bool, answer: Answer) -> Vec<Step> {
        let may = write || self.of(process).login != Login::So;
        match answer {
            Answer::Handle(handle) if may => self.change(None, |next| {
                next.sessions.insert(handle, Session { process, write, operation: None });
            }),
            answer => self.only(!may && answer == Answer::No(Error::SESSION_READ_WRITE_SO_EXISTS)),
        }
    }

    pub(super) fn close(&self, at: Progress, session: u64, answer: Answer) -> Vec<Step> {
        let Progress { stage, process, .. } = at;
        if stage == Stage::Begun {
            return match (self.sessions.get(&session), answer) {
                (None, answer) => self.only(answer == NO_SESSION),
                (Some(Session { process, .. }), Answer::Done) => {
                    let at = Progress { stage: Stage::Checked, process: *process, ..at };
                    self.change(Some(at), |next| next.sessions.remove(&session))
                }
                _ => Vec::new(),
            };
        }
        let owned = |thing: &Thing| !thing.kind.on_token() && thing.owner.0 == session;
        match self.things.iter().find(|(_, thing)| owned(thing)) {
            Some((&tag, _)) => self.change(Some(at), |next| {
                next.things.remove(&tag);
                next.end_operations(process, |operation| operation.tag == tag);
            }),
            None => self.end_of_sessions(at),
        }
    }

    /// No login lasts longer than the last session.
    fn end_of_sessions(&self, at: Progress) -> Vec<Step> {
        if at.stage == Stage::Closing {
            return self.close_store(at.process);
        }
        if self.has_sessions(at.process) || self.of(at.process).login == Login::Public {
            return self.only(true);
        }
        let at = Progress { stage: Stage::Closing, ..at };
        self.change(Some(at), |next| next.end_login(at.process))
    }

    fn has_sessions(&self, process: u8) -> bool {
        self.sessions.values().any(|session| session.process == process)
    }

    pub(super) fn login(
        &self,
        at: Progress,
        session: u64,
        user: bool,
        answer: Answer,
    ) -> Vec<Step> {
        let wanted = if user { Login::User } else { Login::So };
        match at.stage {
            Stage::Begun => match self.sessions.get(&session) {
                None => self.only(answer == NO_SESSION),
                Some(Session { process, .. }) => {
                    self.then(Progress { stage: Stage::Checked, process: *process, ..at })
                }
            },
            Stage::Checked => {
                let Process { login, keys, .. } = *self.of(at.process);
                let only_reads = self.reads_only(at.process);
                let mut steps = match answer {
                    NO_SESSION => self.only(!self.sessions.contains_key(&session)),
                    Answer::No(Error::USER_ALREADY_LOGGED_IN) => self.only(login == wanted),
                    Answer::No(Error::USER_ANOTHER_ALREADY_LOGGED_IN) => {
                        self.only(login != wanted && login != Login::Public)
                    }
                    Answer::No(Error::SESSION_READ_ONLY_EXISTS) => self.only(!user && only_reads),
                    Answer::Done if login == Login::Public => {
                        let keys = Some(self.incarnation);
                        let at = Progress { stage: Stage::Sealing, keys, ..at };
                        self.change(Some(at), |next| next.process(at.process).keys = keys)
                    }
                    _ => Vec::new(),
                };
                if login != Login::Public && keys != Some(self.incarnation) {
                    // The token was made anew since: that login is over.
                    let at = Progress { stage: Stage::Closing, ..at };
                    steps.extend(self.change(Some(at), |next| next.end_login(at.process)));
                }
                steps
            }
            Stage::Closing => {
                let at = Progress { stage: Stage::Checked, ..at };
                self.change(Some(at), |next| next.process(at.process).keys = None)
            }
            _ => {
                let Process { login, keys, .. } = *self.of(at.process);
                let may = user || !self.reads_only(at.process);
                if login != Login::Public || keys != at.keys || !may {
                    return Vec::new();
                }
                self.change(None, |next| {
                    let process = next.process(at.process);
                    process.login = wanted;
                    process.epoch += 1;
                })
            }
        }
    }

    /// Whether a session of the process only reads.
    fn reads_only(&self, process: u8) -> bool {
        self.sessions.values().any(|session| session.process == process && !session.write)
    }

    pub(super) fn logout(&self, at: Progress, session: u64, answer: Answer) -> Vec<Step> {
        match at.stage {
            Stage::Begun => match self.sessions.get(&session) {
                None => self.only(answer == NO_SESSION),
                Some(Session { process, .. }) => {
                    self.then(Progress { stage: Stage::Checked, process: *process, ..at })
                }
            },
            Stage::Checked => match (answer, self.of(at.process).login != Login::Public) {
                (Answer::Done, true) => {
                    let at = Progress { stage: Stage::Closing, ..at };
                    self.change(Some(at), |next| next.end_login(at.process))
                }
                (answer, somebody) => self.only(answer == NO_LOGIN && !somebody),
            },
            _ => self.close_store(at.process),
        }
    }

    fn end_login(&mut self, process: u8) {
        let login = self.process(process);
        login.login = Login::Public;
        login.epoch += 1;
        self.things.retain(|_, thing| {
            thing.kind.on_token() || !thing.kind.private() || thing.owner.1 != process
        });
        for session in self.sessions.values_mut().filter(|s| s.process == process) {
            session.operation = session.operation.filter(|operation| !operation.kind.private());
        }
    }

    /// The next login comes after this.
    fn close_store(&self, process: u8) -> Vec<Step> {
        if self.of(process).login != Login::Public {
            return Vec::new();
        }
        self.change(None, |next| next.process(process).keys = None)
    }

    pub(super) fn init_token(&self, process: u8, answer: Answer) -> Vec<Step> {
        match answer {
            Answer::No(Error::SESSION_EXISTS) => self.only(self.has_sessions(process)),
            Answer::Done if !self.has_sessions(process) => self.change(None, |next| {
                next.incarnation += 1;
                next.process(process).keys = None;
                next.things.retain(|_, thing| !thing.kind.on_token());
                next.end_operations(process, |operation| operation.kind.on_token());
            }),
            _ => Vec::new(),
        }
    }
}
