// SPDX-License-Identifier: Apache-2.0
//! The module and its tokens: found, loaded, listed, chosen.

use crate::encoding::printable;
use crate::failure::{self, Failure, Result};
use crate::pin::{self, Role, Source, tries};
use crate::uri::Uri;
use metaslot_ck::{self as ck, CK_FLAGS, SlotId};
use metaslot_client::{
    self as client, Access, FastLogin, Initialize, LIBRARY, Module, Template, TokenCost, TokenInfo,
    TokenStatus,
};
use metaslot_memory::Secret;
use metaslot_spi::store::Name;
use std::ffi::CString;
use std::path::{Path, PathBuf};

/// An initialised module; finalised on drop.
#[derive(Debug)]
pub(crate) struct Host {
    module: Module,
    /// Whether it was initialised here.
    is_ours: bool,
}

impl Drop for Host {
    fn drop(&mut self) {
        // Nothing can be done about a failure at the end.
        if self.is_ours {
            self.module.finalize().ok();
        }
    }
}

impl Host {
    /// Loads `chosen`, else the one that the URI names, else ours.
    pub(crate) fn load(chosen: Option<&Path>, uri: &Uri) -> Result<Self> {
        let path = match (chosen, &uri.module_path) {
            (Some(path), _) => file(path),
            (None, Some(path)) => file(Path::new(path)),
            (None, None) => own()?,
        };
        let module = Module::load(&path)?;
        failure::explained_by(&module);
        module.initialize().map_err(|error| {
            Failure::from(error).context(format!("cannot initialise {}", path.display()))
        })?;
        Ok(Self { module, is_ours: true })
    }

    /// Another module beside the one in use, or that one, with what `C_Initialize` of it wants.
    pub(crate) fn beside(path: &Path, parameters: Option<&str>) -> Result<Self> {
        let module = Module::load(file(path))
            .map_err(|error| Failure::from(error).hint("--from names that module's file"))?;
        let text = parameters.map(CString::new).transpose();
        let text = text.map_err(|_| Failure::usage("no parameter has a NUL in it"))?;
        let how = Initialize::Flags(ck::CKF_OS_LOCKING_OK, text.as_deref());
        match module.initialize_with(how) {
            Ok(()) => Ok(Self { module, is_ours: true }),
            Err(error) if error.code == ck::Error::CRYPTOKI_ALREADY_INITIALIZED => {
                Ok(Self { module, is_ours: false })
            }
            Err(error) => {
                let what = format!("cannot initialise {}", path.display());
                let failure = Failure::from(error).without_detail().context(what);
                Err(match (error.code, parameters) {
                    (ck::Error::ARGUMENTS_BAD, None) => failure.hint(
                        "NSS's modules want --from-parameters \"configdir='sql:DIRECTORY' certPrefix='' keyPrefix='' secmod='secmod.db' flags=readOnly\"",
                    ),
                    _ => failure,
                })
            }
        }
    }

    pub(crate) const fn module(&self) -> &Module {
        &self.module
    }

    /// Every token, initialised or not, in the order of the slots. One that cannot be read is among
    /// them, with the reason: it must not hide the others.
    pub(crate) fn tokens(&self) -> Result<Vec<Token>> {
        let mut tokens: Vec<Token> = Vec::new();
        // Of our module an empty slot may be that of a server which does not answer.
        for slot in self.module.slots(!self.is_ours)? {
            match self.module.token_info(slot) {
                Ok(info) => {
                    let (status, cost) =
                        (self.module.token_status(slot), self.module.token_cost(slot));
                    let fast_login = self.module.fast_login(slot);
                    tokens.push(Token { status, cost, fast_login, ..Token::new(slot, info) });
                }
                Err(error) if error.code == ck::Error::TOKEN_NOT_PRESENT => {
                    let why = self.module.detail();
                    tokens.extend(why.map(|why| Token::unreadable(slot, why)));
                }
                Err(error) => {
                    let why = Failure::from(error).message().to_owned();
                    tokens.push(Token::unreadable(slot, why));
                }
            }
        }
        let names: Vec<(String, String)> = tokens.iter().map(Token::label_and_serial).collect();
        for token in &mut tokens {
            let (label, serial) = token.label_and_serial();
            let same: Vec<_> = names.iter().filter(|name| name.0 == label).collect();
            token.serial_needed = same.len() > 1 || label.is_empty();
            // A copy of a token that was restored beside it has its serial number, too.
            token.slot_needed = same.iter().filter(|name| name.1 == serial).count() > 1;
        }
        Ok(tokens)
    }

    /// The one initialised token that matches.
    pub(crate) fn token(&self, uri: &Uri) -> Result<Token> {
        self.only(self.candidates(uri)?, uri)
    }

    /// Every initialised token that matches, one at least.
    pub(crate) fn every(&self, uri: &Uri) -> Result<Vec<Token>> {
        let found = self.candidates(uri)?;
        if found.is_empty() { Err(self.no_token(uri)) } else { Ok(found) }
    }

    /// Why tokens cannot be read that may be among those that match: of such a one no name is known.
    pub(crate) fn unreadable(&self, uri: &Uri) -> Result<Vec<Failure>> {
        let slot = Uri { slot_id: uri.slot_id, ..Uri::default() };
        if uri.token_part() != slot.token_part() || !self.library_matches(uri)? {
            return Ok(Vec::new());
        }
        let is_meant = |token: &Token| uri.slot_id.is_none_or(|slot| slot == token.slot.0);
        let tokens = self.tokens()?.into_iter().filter(is_meant);
        Ok(tokens.filter_map(|token| token.unread()).collect())
    }

    /// The one token that matches; of several the one that shows what the URI names without a login.
    pub(crate) fn token_with(&self, uri: &Uri) -> Result<Token> {
        let all = self.candidates(uri)?;
        if all.len() < 2 || (uri.object.is_none() && uri.id.is_none()) {
            return self.only(all, uri);
        }
        let shows = |token: &&Token| self.shows(token, uri).unwrap_or(false);
        let having: Vec<Token> = all.iter().filter(shows).cloned().collect();
        let what = uri
            .object
            .as_ref()
            .map_or_else(|| String::from("that id"), |label| format!("'{}'", printable(label)));
        if having.is_empty() {
            // A secret key is in none of them that can be seen: then it is not known which is meant.
            return Err(Failure::not_found(format!("no token shows {what} without a login"))
                .choose(
                    "say which has it with --token, or in the URI",
                    all.iter().map(Token::uri),
                ));
        }
        match having.len() {
            1 => self.only(having, uri),
            many => {
                let there = having.iter().map(|token| Uri {
                    object: uri.object.clone(),
                    id: uri.id.clone(),
                    class: uri.class,
                    ..token.uri()
                });
                Err(Failure::not_found(format!("{many} tokens have {what}"))
                    .choose("say which with --token, or take its URI", there))
            }
        }
    }

    fn shows(&self, token: &Token, uri: &Uri) -> Result<bool> {
        let session = self.module.open_session(token.slot, Access::ReadOnly)?;
        let template = Template::new().token(true);
        let template = uri.object.iter().fold(template, |all, label| all.label(label));
        let template = uri.id.iter().fold(template, |all, id| all.bytes(ck::CKA_ID, id));
        Ok(!session.find(&template)?.is_empty())
    }

    /// Initialised tokens that match. Where the URI names none, other modules' tokens are not meant: the metaslot shows
    /// what is in them.
    pub(crate) fn candidates(&self, uri: &Uri) -> Result<Vec<Token>> {
        let mut tokens = self.matching(uri)?;
        tokens.retain(|token| token.has(ck::CKF_TOKEN_INITIALIZED));
        if uri.token_part() == Uri::default() && self.module.is_metaslot() {
            let others = |token: &&Token| token.slot.0 != 0 && token.is_others();
            let ours = tokens.len() - tokens.iter().filter(others).count();
            tokens.retain(|token| ours == 0 || !others(&token));
        }
        Ok(tokens)
    }

    pub(crate) fn only(&self, mut tokens: Vec<Token>, uri: &Uri) -> Result<Token> {
        match tokens.len() {
            0 => Err(self.no_token(uri)),
            1 => Ok(tokens.remove(0)),
            many => Err(Failure::not_found(format!("{many} tokens match"))
                .choose("say which with --token, or in the URI", tokens.iter().map(Token::uri))),
        }
    }

    /// Tokens that the URI describes.
    pub(crate) fn matching(&self, uri: &Uri) -> Result<Vec<Token>> {
        if !self.library_matches(uri)? {
            return Ok(Vec::new());
        }
        let mut matching = Vec::new();
        for token in self.tokens()? {
            if token.matches(uri) && self.slot_matches(token.slot, uri)? {
                matching.push(token);
            }
        }
        Ok(matching)
    }

    fn library_matches(&self, uri: &Uri) -> Result<bool> {
        let info = self.module.info()?;
        Ok(same(uri.library_manufacturer.as_ref(), &info.manufacturer)
            && same(uri.library_description.as_ref(), &info.description)
            && uri.library_version.is_none_or(|version| version == info.library_version))
    }

    fn slot_matches(&self, slot: SlotId, uri: &Uri) -> Result<bool> {
        if uri.slot_description.is_none() && uri.slot_manufacturer.is_none() {
            return Ok(true);
        }
        let info = self.module.slot_info(slot)?;
        Ok(same(uri.slot_description.as_ref(), &info.description)
            && same(uri.slot_manufacturer.as_ref(), &info.manufacturer))
    }

    fn no_token(&self, uri: &Uri) -> Failure {
        let tokens = self.tokens().unwrap_or_default();
        let is_meant = |token: &&Token| uri.slot_id.is_none_or(|slot| slot == token.slot.0);
        if let Some(failure) = tokens.iter().filter(is_meant).find_map(Token::unread) {
            return failure;
        }
        let initialised = tokens.iter().filter(|token| token.has(ck::CKF_TOKEN_INITIALIZED));
        let names: Vec<String> = initialised.map(|token| token.uri().to_string()).collect();
        let wanted = uri.token_part();
        match (names.is_empty(), wanted == Uri::default()) {
            (true, _) => Failure::not_found("there is no initialised token")
                .hint("make one: metaslot token init --label NAME"),
            (false, _) => Failure::not_found(format!("no token matches {wanted}"))
                .hint(format!("there is {}", names.join(", "))),
        }
    }

    /// Why a login failed, with the tries that are left.
    pub(crate) fn login_failure(&self, token: &Token, role: Role, error: client::Error) -> Failure {
        // Before the next call takes the module's explanation away.
        let failure = Failure::from(error);
        let status = self.module.token_status(token.slot).map(|status| role.of(&status));
        match (error.code, status) {
            // There is no code for a PIN that is locked for seconds.
            (ck::Error::PIN_LOCKED, Some(pin)) if pin.left > 0 => failure
                .saying("the PIN was not tried, so soon after wrong ones")
                .without_detail()
                .hint(tries::exact(pin)),
            (ck::Error::PIN_INCORRECT, Some(pin)) => {
                failure.without_detail().hint(tries::exact(pin))
            }
            (ck::Error::PIN_LOCKED | ck::Error::PIN_INCORRECT, None) => {
                let flags = self.module.token_info(token.slot).map_or(0, |info| info.flags);
                let hint = tries::roughly(role, flags);
                match error.code {
                    ck::Error::PIN_INCORRECT => failure.hint(hint),
                    _ if hint == tries::WRONG_BEFORE => failure
                        .saying("the PIN was not tried: it is locked, or it is too soon after wrong ones")
                        .hint(hint),
                    _ if hint == tries::LOCKED => failure.hint(hint),
                    // A module that locks a PIN and does not say so by a flag.
                    _ => failure,
                }
            }
            _ => failure,
        }
    }

    /// Why a login by a name failed. Of a wrong PIN and a name that is not there the token says one thing.
    pub(crate) fn identity_failure(token: &Token, name: Name, error: client::Error) -> Failure {
        let failure = Failure::from(error);
        let (token, name) = (token.name(), name.as_str());
        match error.code {
            ck::Error::PIN_INCORRECT => {
                let what =
                    format!("{token} has no identity '{name}' with this PIN, or that is locked");
                failure.saying(&what).without_detail().hint(
                    "the token does not tell which: 'metaslot token identity list' does, with the SO PIN",
                )
            }
            ck::Error::ARGUMENTS_BAD
            | ck::Error::FUNCTION_NOT_SUPPORTED
            | ck::Error::USER_TYPE_INVALID => {
                let what = format!("{token} takes no login of an identity");
                failure.saying(&what).hint("the user without a name logs in without --identity")
            }
            _ => failure,
        }
    }
}

/// A token and its slot.
#[derive(Clone, Debug)]
pub(crate) struct Token {
    pub(crate) slot: SlotId,
    pub(crate) info: TokenInfo,
    /// How its PINs stand, where the module says it.
    pub(crate) status: Option<TokenStatus>,
    /// What a guess at its PINs costs, where the module says it.
    pub(crate) cost: Option<TokenCost>,
    /// What becomes of fast logins, where they are configured.
    pub(crate) fast_login: Option<FastLogin>,
    /// Why nothing is known of it.
    pub(crate) problem: Option<String>,
    /// Another token has the same label.
    serial_needed: bool,
    /// Another token has the same serial number, too.
    slot_needed: bool,
}

impl Token {
    const fn new(slot: SlotId, info: TokenInfo) -> Self {
        Self {
            slot,
            info,
            status: None,
            cost: None,
            fast_login: None,
            problem: None,
            serial_needed: false,
            slot_needed: false,
        }
    }

    fn label_and_serial(&self) -> (String, String) {
        (self.info.label.clone(), self.info.serial.clone())
    }

    /// Why it cannot be read, if it cannot.
    fn unread(&self) -> Option<Failure> {
        let problem = self.problem.as_ref()?;
        let slot = self.slot;
        Some(Failure::failed(format!("the token in slot {slot} cannot be read: {problem}")))
    }

    fn unreadable(slot: SlotId, problem: String) -> Self {
        let info = TokenInfo {
            label: String::new(),
            manufacturer: String::new(),
            model: String::new(),
            serial: String::new(),
            flags: 0,
            sessions: None,
            pin_lengths: (0, 0),
        };
        Self { problem: Some(problem), ..Self::new(slot, info) }
    }

    /// Whether all of these `CKF_…` are set.
    pub(crate) const fn has(&self, flags: CK_FLAGS) -> bool {
        self.info.has(flags)
    }

    /// Whether it is a token of another module, or a pool of such.
    pub(crate) fn is_others(&self) -> bool {
        self.info.manufacturer != "Metaslot" || self.info.model == "pool"
    }

    /// The shortest URI that names it among the module's tokens.
    pub(crate) fn uri(&self) -> Uri {
        if !self.has(ck::CKF_TOKEN_INITIALIZED) {
            return Uri { slot_id: Some(self.slot.0), ..Uri::default() };
        }
        Uri {
            token: (!self.info.label.is_empty()).then(|| self.info.label.clone()),
            serial: self.serial_needed.then(|| self.info.serial.clone()),
            slot_id: self.slot_needed.then_some(self.slot.0),
            ..Uri::default()
        }
    }

    /// A PIN of it, from `source`, else from the terminal.
    pub(crate) fn pin(&self, role: Role, source: Option<&Source>) -> Result<Secret> {
        if role == Role::User {
            pin::only_as_user()?;
        }
        pin::existing(role, &self.info.label, self.status.as_ref(), source)
    }

    /// The PIN of an identity of it, likewise.
    pub(crate) fn identity_pin(&self, name: Name, source: Option<&Source>) -> Result<Secret> {
        pin::identity::existing(name, &self.info.label, source)
    }

    /// As messages call it.
    pub(crate) fn name(&self) -> String {
        format!("token '{}'", self.info.label)
    }

    fn matches(&self, uri: &Uri) -> bool {
        uri.is_of(self.slot, &self.info)
    }
}

fn same(wanted: Option<&String>, actual: &str) -> bool {
    wanted.is_none_or(|wanted| wanted == actual)
}

/// A name without a directory means a file here before it means one that the loader knows.
fn file(path: &Path) -> PathBuf {
    let here = Path::new(".").join(path);
    if path.components().count() == 1 && here.exists() { here } else { path.to_path_buf() }
}

/// Our module, beside this command or installed.
fn own() -> Result<PathBuf> {
    metaslot_client::installed().ok_or_else(|| {
        Failure::not_found(format!("{LIBRARY} is neither beside this command nor installed"))
            .hint("give its path with --module or METASLOT_MODULE")
    })
}
