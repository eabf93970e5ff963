// SPDX-License-Identifier: Apache-2.0
//! `metaslot setup --credential`: the PIN is encrypted on the disk, and systemd decrypts it for the program's unit (`systemd.exec(5)`).

use super::program::{Plan, Program};
use crate::failure::{Failure, Result};
use std::borrow::Cow;
use std::path::{Path, PathBuf};

/// Where systemd looks for encrypted credentials by itself, too.
const STORE: &str = "/etc/credstore.encrypted";

/// A credential of a unit's.
#[derive(Debug)]
pub(super) struct Credential {
    unit: Cow<'static, str>,
    before: &'static str,
}

impl Credential {
    pub(super) fn of(program: &Program, pin: Option<&Path>) -> Result<Self> {
        let Some((unit, before)) = program.unit() else {
            let what = format!(
                "no unit of {} is known whose processes could read a credential",
                program.name
            );
            return Err(Failure::failed(what).hint(
                "nginx, apache and mariadb have one; elsewhere name a file: --pin-source FILE",
            ));
        };
        match pin {
            Some(_) => Ok(Self { unit: unit.into(), before }),
            None => Err(Failure::pin("a credential is made of a file with the PIN")
                .hint("name the file: --pin-source FILE")),
        }
    }

    /// One of a unit that is written with it.
    pub(super) const fn of_unit(unit: String) -> Self {
        Self { unit: Cow::Owned(unit), before: "" }
    }

    /// What the unit's processes read.
    pub(super) fn file(&self) -> PathBuf {
        Path::new("/run/credentials").join(&*self.unit).join("pin")
    }

    /// The line of the unit.
    pub(super) fn line(&self) -> String {
        format!("LoadCredentialEncrypted=pin:{STORE}/{}.pin", self.unit)
    }

    /// What is typed, with what it is made of.
    pub(super) fn add_to(&self, plan: &mut Plan, pin: &Path, is_enabled: bool) {
        let Self { unit, before } = self;
        let mut lines = vec![format!(
            "mkdir -p -m 700 {STORE} && systemd-creds encrypt --name=pin {} {STORE}/{unit}.pin          # then that file need not stay",
            pin.display()
        )];
        if is_enabled {
            plan.then.clear();
            lines.extend(before.lines().map(str::to_owned));
            lines.push(format!("systemctl daemon-reload; systemctl restart {unit}"));
        } else {
            plan.then.push(format!("in its [Service], too: {}", self.line()));
        }
        lines.append(&mut plan.then);
        plan.then = lines;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;
    use std::{env, fs, process};

    /// What systemd says of a unit with these lines.
    fn said(program: &str, drop_in: &str) -> Option<String> {
        let unit = env::temp_dir().join(format!("metaslot-{program}-{}.service", process::id()));
        fs::write(&unit, format!("{drop_in}ExecStart=/bin/true\n")).expect("it can be written");
        let verify = Command::new("systemd-analyze").arg("verify").arg(&unit).output();
        fs::remove_file(&unit).expect("it is there");
        verify.ok().map(|output| String::from_utf8_lossy(&output.stderr).into_owned())
    }

    #[test]
    fn systemd_reads_the_drop_ins_that_are_written() {
        for name in ["nginx", "apache"] {
            let program = Program::find(name).expect("it is known");
            let credential = Credential::of(program, Some(Path::new("/pin"))).expect("it has one");
            for line in [String::new(), format!("\n{}", credential.line())] {
                let values = [
                    ("directory", "/etc/metaslot".to_owned()),
                    ("cnf", "openssl.cnf".to_owned()),
                    ("credential", line.clone()),
                ];
                let plan = program.plan(&values);
                let of_unit = |file: &&(&str, String)| file.0.contains(".service.d/");
                let (place, text) = plan.included.iter().find(of_unit).expect("there is one");
                assert!(place.contains(&format!("/{}.d/", credential.unit)), "{place}");
                assert!(text.ends_with(&format!("openssl.cnf{line}\n")), "{text}");
                match said(name, text) {
                    Some(said) => assert!(!said.contains("ignoring"), "{said}"),
                    None => println!("not run: systemd-analyze is not installed"),
                }
            }
        }
    }
}
