// SPDX-License-Identifier: Apache-2.0
//! What a URI finds: keys and certificates.

use crate::failure::{Failure, Reason, Result};
use crate::host::Token;
use crate::key::Key;
use crate::provider::{Ask, Provider};
use metaslot_ck::*;
use metaslot_client::uri::{Class, Uri};
use metaslot_client::{Template, Value};
use std::collections::VecDeque;
use std::sync::Arc;

/// What was found.
#[derive(Debug)]
pub(crate) enum Found {
    Key(Arc<Key>),
    /// Its DER.
    Certificate(Vec<u8>),
}

/// A search that hands out one after the other.
#[derive(Debug)]
pub(crate) struct Store {
    pub(crate) provider: Arc<Provider>,
    uri: Uri,
    text: String,
    expected: Option<Class>,
    /// What certificates must have besides, and what everything must be called.
    certificates: Template,
    alias: Option<String>,
    found: Option<VecDeque<Found>>,
}

/// Private keys first: programs take the first that they can use.
const CLASSES: &[(Class, CK_OBJECT_CLASS)] = &[
    (Class::Private, CKO_PRIVATE_KEY),
    (Class::Public, CKO_PUBLIC_KEY),
    (Class::Certificate, CKO_CERTIFICATE),
];

impl Store {
    pub(crate) fn open(provider: Arc<Provider>, text: &str) -> Result<Self> {
        let uri = text.parse();
        let uri: Uri =
            uri.map_err(|error| Failure::input(format!("not a PKCS#11 URI: {error}")))?;
        // A PIN in it is not repeated.
        let text = uri.to_string();
        Ok(Self {
            provider,
            uri,
            text,
            expected: None,
            certificates: Template::new(),
            alias: None,
            found: None,
        })
    }

    /// The URI, as messages show it.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// What the program wants only.
    pub(crate) fn expect(&mut self, class: Option<Class>) {
        self.expected = class;
    }

    /// Whether the URI says what it names.
    pub(crate) const fn names_class(&self) -> bool {
        self.uri.class.is_some()
    }

    /// Certificates that have this only.
    pub(crate) fn certificates(&mut self, attribute: CK_ATTRIBUTE_TYPE, value: &[u8]) {
        self.certificates.push(attribute, Value::Bytes(value.to_vec()));
    }

    /// What is called so only.
    pub(crate) fn called(&mut self, alias: &str) {
        self.alias = Some(alias.to_owned());
    }

    /// Whether everything was handed out.
    pub(crate) fn is_done(&self) -> bool {
        self.found.as_ref().is_some_and(VecDeque::is_empty)
    }

    /// The next one; the first call searches.
    pub(crate) fn next(&mut self, ask: Ask<'_>) -> Result<Option<Found>> {
        let mut found = match self.found.take() {
            Some(found) => found,
            None => {
                // Where the search fails there is nothing more.
                self.found = Some(VecDeque::new());
                self.search(ask).map_err(|failure| failure.about(&self.text))?
            }
        };
        let first = found.pop_front();
        self.found = Some(found);
        Ok(first)
    }

    fn search(&self, ask: Ask<'_>) -> Result<VecDeque<Found>> {
        let mut found = VecDeque::new();
        let tokens = self.provider.tokens(&self.uri)?;
        let not_found = |what| Failure::new(Reason::NotFound, format!("{}: {what}", self.text));
        if tokens.is_empty() {
            return Err(not_found("there is no such token"));
        }
        for token in tokens {
            self.search_token(&token, ask, &mut found)?;
        }
        if found.is_empty() {
            return Err(not_found("there is no such object"));
        }
        Ok(found)
    }

    fn search_token(
        &self,
        token: &Arc<Token>,
        ask: Ask<'_>,
        found: &mut VecDeque<Found>,
    ) -> Result<()> {
        let wanted = |class| {
            self.uri.class.is_none_or(|only| only == class)
                && self.expected.is_none_or(|only| only == class)
        };
        if wanted(Class::Private) {
            self.provider.login(token, &self.uri, ask)?;
        }
        let mut session = token.session()?;
        for (class, number) in CLASSES.iter().filter(|row| wanted(row.0)) {
            // Who asks for what certificates have wants no keys.
            if *class != Class::Certificate && !self.certificates.is_empty() {
                continue;
            }
            let mut template = Template::new().class(*number);
            if let Some(id) = &self.uri.id {
                template = template.bytes(CKA_ID, id);
            }
            for label in self.uri.object.iter().chain(&self.alias) {
                template = template.label(label);
            }
            template.extend(self.certificates.iter().map(|(name, value)| (name, value.clone())));
            let failed = |error| token.failed(&format!("find {}", self.text), error);
            for object in session.find(&template).map_err(failed)? {
                if *class == Class::Certificate {
                    let value = session.attribute(object, CKA_VALUE).map_err(failed)?;
                    found.push_back(Found::Certificate(value));
                } else {
                    let is_private = *class == Class::Private;
                    let key = Key::read(&self.provider, &session, object, is_private, &self.uri)?;
                    found.extend(key.map(|key| Found::Key(Arc::new(key))));
                }
            }
        }
        session.succeeded();
        Ok(())
    }
}
