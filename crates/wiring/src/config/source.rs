// SPDX-License-Identifier: Apache-2.0
//! Where configurations are looked for: files, and the drop-ins after them.

use super::problem::{Problem, Text};
use super::{Config, TokenConfig, costs, metaslot};
use crate::environment::{directory, variable};
use metaslot_router::shipped;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The longest file, in bytes.
const LONGEST: usize = 1 << 20;

/// So often a directory is read from which drop-ins go meanwhile.
const LISTINGS: usize = 8;

/// Where configurations are looked for. The environment is asked once: a host may change it later.
#[derive(Debug)]
pub struct Source {
    /// Of which the first whose file is there counts. The drop-ins of the last one count without a file, too.
    places: Vec<Place>,
    /// The user's directory.
    own: Option<PathBuf>,
    /// Who names a file means it: it must be there.
    named: bool,
    /// Where the user's own token is without a configuration.
    data: Option<PathBuf>,
    variables: metaslot::Variables,
}

/// A configuration's file, and the directories of what is read after it.
#[derive(Debug)]
struct Place {
    file: PathBuf,
    drop_ins: Vec<PathBuf>,
}

/// Which files were read.
#[derive(Clone, Debug, Default)]
pub struct Found {
    /// The configuration that counted.
    pub(crate) main: Option<PathBuf>,
    /// Drop-ins, in their order.
    pub(crate) drop_ins: Vec<PathBuf>,
}

impl Found {
    /// The file that stands for all of them.
    pub fn first(&self) -> Option<&Path> {
        self.main.as_ref().or_else(|| self.drop_ins.first()).map(PathBuf::as_path)
    }
}

impl Source {
    /// Where the variables of the environment say.
    #[must_use]
    pub fn of_environment() -> Self {
        let variables = metaslot::Variables::of_environment();
        if let Some(named) = variable(c"METASLOT_CONF").map(PathBuf::from) {
            return Self { variables, ..Self::of_file(named) };
        }
        let home = directory(c"HOME");
        let own = directory(c"XDG_CONFIG_HOME").or_else(|| Some(home.as_ref()?.join(".config")));
        let data = directory(c"XDG_DATA_HOME").or_else(|| Some(home?.join(".local/share")));
        let own = own.map(|own| own.join("metaslot"));
        Self {
            places: places(own.as_deref(), Path::new("/etc/metaslot")),
            own,
            named: false,
            data,
            variables,
        }
    }

    /// A file that must be there, without drop-ins.
    #[must_use]
    pub fn of_file(file: PathBuf) -> Self {
        let variables = metaslot::Variables::default();
        let places = vec![Place { file, drop_ins: Vec::new() }];
        Self { places, own: None, named: true, data: None, variables }
    }

    /// Files that may be the configuration.
    pub fn configurations(&self) -> impl Iterator<Item = &Path> {
        self.places.iter().map(|place| place.file.as_path())
    }

    /// Everything that says something, whether it is there or not: configurations, beside them what operations cost,
    /// directories of drop-ins, and what is in them.
    pub fn files(&self) -> impl Iterator<Item = PathBuf> {
        let files = self.configurations().flat_map(|file| [file.to_owned(), costs::file(file)]);
        // The last place has the directories of all.
        let directories = self.places.last().into_iter().flat_map(|place| &place.drop_ins);
        files.chain(directories.flat_map(|directory| {
            let inside = drop_ins(directory).unwrap_or_default();
            [directory.clone()].into_iter().chain(inside)
        }))
    }

    /// Reads the first configuration that is there with its drop-ins, and says which files.
    ///
    /// # Errors
    /// The file, the line and the reason.
    pub fn read(&self) -> Result<(Config, Found), Problem> {
        let (mut config, found) = self.texts()?;
        let unfit =
            |(name, reason): (&str, String)| Problem::new(Some(PathBuf::from(name)), reason);
        self.variables.apply(&mut config.metaslot).map_err(unfit)?;
        Ok((config, found))
    }

    fn texts(&self) -> Result<(Config, Found), Problem> {
        let (main, directories) = self.main()?;
        let mut found = Found::default();
        let mut texts = Vec::from_iter(main);
        found.main = texts.first().map(|text| text.file.clone());
        for directory in directories.iter().filter(|directory| self.counts(directory)) {
            for text in drop_in_texts(directory, || drop_ins(directory))? {
                found.drop_ins.push(text.file.clone());
                texts.push(text);
            }
        }
        let mut config = Config::of(&texts)?;
        if config.tokens.is_empty() && config.foreign.is_empty() {
            match &found.main {
                Some(_) => {
                    let reason = "has no [[token]] section, nor a [[foreign]] one";
                    return Err(Problem::new(found.main, String::from(reason)));
                }
                None => config.tokens.push(TokenConfig::usual(self.data.clone())),
            }
        }
        config.routes.costs = self.costs(&config, &found);
        Ok((config, found))
    }

    /// The file that counts, if one does, and where its drop-ins are.
    fn main(&self) -> Result<(Option<Text>, &[PathBuf]), Problem> {
        for place in self.places.iter().filter(|place| self.counts(&place.file)) {
            match text_of(&place.file) {
                Err(error) if costs::is_absent(&error) && !self.named => {}
                text => return Ok((Some(Text::new(&place.file, text)?), &place.drop_ins)),
            }
        }
        Ok((None, self.places.last().map_or(&[], |place| &place.drop_ins)))
    }

    /// Whether what is in a place counts: in the user's directory only where that is the user's whose rights this process has, or
    /// root's, and not in another user's that is closed to it. The variables may be another user's, as under `sudo`.
    fn counts(&self, file: &Path) -> bool {
        let Some(own) = self.own.as_deref().filter(|own| file.starts_with(own)) else {
            return true;
        };
        let user = rustix::process::geteuid().as_raw();
        match fs::metadata(own) {
            Ok(metadata) => [0, user].contains(&metadata.uid()),
            // A worker that has given up root's rights, and looks into root's home.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                let closed = own.ancestors().find_map(|path| fs::metadata(path).ok());
                closed.is_some_and(|metadata| metadata.uid() == user)
            }
            Err(_) => true,
        }
    }

    /// What is known of what operations cost: beside the file that counts, or without one in any place.
    fn costs(&self, config: &Config, found: &Found) -> Vec<metaslot_router::cost::Cost> {
        let known = match &found.main {
            Some(main) => costs::beside(main),
            None => {
                let mut files = self.configurations().filter(|file| self.counts(file));
                files.find_map(costs::beside)
            }
        };
        // Ours are in the order of their costs; to read the table takes a third of a millisecond.
        let shipped = || if config.wanted.is_empty() { Vec::new() } else { shipped::costs() };
        known.unwrap_or_else(shipped)
    }
}

/// The user's configuration with the user's drop-ins, or else the system's with those of both.
fn places(own: Option<&Path>, system: &Path) -> Vec<Place> {
    let all = [own, Some(system)].into_iter().flatten();
    let place = |directory: &Path| {
        let mut drop_ins = vec![directory.join("metaslot.d")];
        drop_ins.extend(own.filter(|own| *own != directory).map(|own| own.join("metaslot.d")));
        Place { file: directory.join("metaslot.toml"), drop_ins }
    };
    all.map(place).collect()
}

/// The drop-ins of a directory, in the order of their names.
fn drop_ins(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = match fs::read_dir(directory) {
        Err(error) if costs::is_absent(&error) => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut found = Vec::new();
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name();
        // What an editor or a package manager leaves beside them has another ending, or a dot before it.
        if name.to_str().is_some_and(|name| name.ends_with(".toml") && !name.starts_with('.')) {
            found.push(entry.path());
        }
    }
    found.sort();
    Ok(found)
}

/// What the drop-ins of a directory say. One that has gone since the directory was read may have another name now.
fn drop_in_texts(
    directory: &Path,
    list: impl Fn() -> io::Result<Vec<PathBuf>>,
) -> Result<Vec<Text>, Problem> {
    let mut left = LISTINGS;
    'list: loop {
        left -= 1;
        let files = list().map_err(|error| Problem::unread(directory, &error))?;
        let mut texts = Vec::new();
        for file in files {
            let text = text_of(&file);
            if text.as_ref().is_err_and(costs::is_absent)
                && fs::symlink_metadata(&file).is_err_and(|error| costs::is_absent(&error))
                && left > 0
            {
                continue 'list;
            }
            texts.push(Text::new(&file, text)?);
        }
        return Ok(texts);
    }
}

fn text_of(file: &Path) -> io::Result<String> {
    let text = costs::plain_text(file, LONGEST)?;
    match text.len() > LONGEST {
        true => Err(io::Error::other("it has more than a MiB")),
        false => Ok(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use metaslot_engine::Policy;
    use std::os::unix::fs::{PermissionsExt, symlink};

    /// A user's directory and the system's, below one that goes with the test.
    struct Directories(PathBuf);

    impl Directories {
        fn new(name: &str) -> Self {
            let name = format!("metaslot-source-{name}-{}", std::process::id());
            let directories = Self(std::env::temp_dir().join(name));
            for directory in ["own/metaslot.d", "system/metaslot.d"] {
                fs::create_dir_all(directories.0.join(directory)).unwrap();
            }
            directories
        }

        fn write(&self, name: &str, text: &str) -> &Self {
            fs::write(self.0.join(name), text).unwrap();
            self
        }

        fn source(&self) -> Source {
            let own = self.0.join("own");
            let places = places(Some(&own), &self.0.join("system"));
            let own = Some(own);
            let data = Some(PathBuf::from("/data"));
            let variables = metaslot::Variables::default();
            Source { places, own, named: false, data, variables }
        }

        /// The paths of the tokens.
        fn tokens(&self) -> Vec<String> {
            let config = self.source().read().unwrap_or_else(|problem| panic!("{problem}")).0;
            config.tokens.iter().map(|token| token.path.display().to_string()).collect()
        }

        fn problem(&self) -> String {
            let problem = self.source().read().expect_err("it is wrong").to_string();
            problem.replace(&format!("{}/", self.0.display()), "")
        }
    }

    impl Drop for Directories {
        fn drop(&mut self) {
            fs::remove_dir_all(&self.0).unwrap();
        }
    }

    fn token(path: &str) -> String {
        format!("[[token]]\npath = \"{path}\"\n")
    }

    #[test]
    fn sections_are_added_in_the_order_of_the_names_and_single_settings_override() {
        let here = Directories::new("order");
        here.write("system/metaslot.toml", &format!("lanes = false\n{}", token("/main")))
            .write("system/metaslot.d/20-b.toml", &token("/b"))
            .write("system/metaslot.d/10-a.toml", &format!("lanes = false\n{}", token("/a")))
            .write("system/metaslot.d/README", "no TOML")
            .write("system/metaslot.d/.hidden.toml", "no TOML")
            .write("own/metaslot.d/05-own.toml", &format!("lanes = true\n{}", token("/own")));
        assert_eq!(here.tokens(), ["/main", "/a", "/b", "/own"]);
        let (config, found) = here.source().read().unwrap();
        assert!(config.lanes);
        assert_eq!(found.main, Some(here.0.join("system/metaslot.toml")));
        assert_eq!(found.drop_ins.len(), 3);
    }

    #[test]
    fn a_users_file_takes_the_place_of_all_that_is_the_systems() {
        let here = Directories::new("own");
        here.write("system/metaslot.toml", &token("/system"))
            .write("system/metaslot.d/a.toml", &token("/a"))
            .write("own/metaslot.toml", &token("/own"))
            .write("own/metaslot.d/b.toml", &token("/b"));
        assert_eq!(here.tokens(), ["/own", "/b"]);
    }

    /// Where the environment is not believed, in a program with more rights than its user, there is no directory of the user's.
    #[test]
    fn without_a_user_only_what_is_the_systems_counts() {
        let here = Directories::new("system");
        here.write("system/metaslot.toml", &token("/system"))
            .write("system/metaslot.d/a.toml", &token("/a"))
            .write("own/metaslot.toml", &token("/own"))
            .write("own/metaslot.d/b.toml", &token("/b"));
        let source = Source { places: places(None, &here.0.join("system")), ..here.source() };
        let paths: Vec<_> =
            source.read().unwrap().0.tokens.into_iter().map(|one| one.path).collect();
        assert_eq!(paths, [Path::new("/system"), Path::new("/a")]);
        assert!(source.files().all(|file| file.starts_with(here.0.join("system"))));
    }

    #[test]
    fn drop_ins_without_a_file_keep_the_usual_token_until_they_name_others() {
        let here = Directories::new("alone");
        here.write("own/metaslot.d/a.toml", "lanes = false\n");
        assert_eq!(here.tokens(), ["/data/metaslot/token.db"]);
        here.write("system/metaslot.d/b.toml", &token("/b"));
        assert_eq!(here.tokens(), ["/b"]);
        assert!(!here.source().read().unwrap().0.lanes);
    }

    #[test]
    fn a_configuration_that_is_a_pipe_holds_nobody() {
        let here = Directories::new("fifo");
        fs::create_dir_all(here.0.join("system")).unwrap();
        let pipe = here.0.join("system/metaslot.toml");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &pipe,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::from_raw_mode(0o600),
            0,
        )
        .unwrap();
        let problem = here.source().read().unwrap_err().to_string();
        assert!(problem.contains("it is no plain file"), "{problem}");
    }

    #[test]
    fn a_wrong_drop_in_is_named_with_the_line() {
        let here = Directories::new("wrong");
        here.write("system/metaslot.toml", &token("/main"));
        for (text, said) in [
            ("\ncolour = 3\n", "line 2: there is no setting \"colour\""),
            ("[[token]]\npath = \"/main\"\n", "line 1: this token is named twice"),
            ("[[token]\n", "line 1: "),
            ("[provider.hsm]\nenabled = false\n", "line 1: there is no such provider: "),
            ("audit_required = true\n", "line 1: audit_required needs audit"),
        ] {
            let problem = here.write("system/metaslot.d/a.toml", text).problem();
            let named = format!("system/metaslot.d/a.toml: {said}");
            assert!(problem.starts_with(&named), "{problem}");
        }
        fs::remove_file(here.0.join("system/metaslot.d/a.toml")).unwrap();
        here.write("system/metaslot.toml", "lanes = true\n");
        assert!(here.problem().starts_with("system/metaslot.toml: has no [[token]] section"));
        here.write("system/metaslot.d/a.toml", &token("/a"));
        assert_eq!(here.tokens(), ["/a"]);
    }

    #[test]
    fn a_drop_in_that_goes_while_they_are_read_is_no_error() {
        let here = Directories::new("gone");
        let directory = here.0.join("system/metaslot.d");
        here.write("system/metaslot.d/a.toml", "").write("system/metaslot.d/b.toml", "");
        let listed = std::cell::Cell::new(0);
        let read = || {
            drop_in_texts(&directory, || {
                let found = drop_ins(&directory);
                if listed.replace(listed.get() + 1) == 0 {
                    fs::rename(directory.join("a.toml"), directory.join("c.toml"))?;
                }
                found
            })
        };
        let names = |text: &Text| text.file.file_name().unwrap().to_owned();
        let texts = read().unwrap_or_else(|problem| panic!("{problem}"));
        assert_eq!(texts.iter().map(names).collect::<Vec<_>>(), ["b.toml", "c.toml"]);
        // One that is listed for ever and never there is.
        let never = || Ok(vec![directory.join("d.toml")]);
        assert!(drop_in_texts(&directory, never).is_err());
    }

    #[test]
    fn what_another_user_owns_does_not_count() {
        let here = Directories::new("owner");
        let own = here.0.join("own");
        here.write("own/metaslot.toml", &token("/own"))
            .write("own/metaslot.d/a.toml", &token("/a"))
            .write("system/metaslot.toml", &token("/system"));
        if std::os::unix::fs::chown(&own, Some(65534), None).is_err() {
            return metaslot_testkit::not_run("module", "files of another user", "not root");
        }
        assert_eq!(here.tokens(), ["/system"]);
        fs::remove_file(here.0.join("system/metaslot.toml")).unwrap();
        assert_eq!(here.tokens(), ["/data/metaslot/token.db"]);
    }

    #[test]
    fn what_is_in_a_closed_home_of_another_user_does_not_count() {
        let here = Directories::new("closed");
        let home = here.0.join("home");
        let own = home.join(".config/metaslot");
        fs::create_dir_all(&own).unwrap();
        fs::write(own.join("metaslot.toml"), token("/own")).unwrap();
        here.write("system/metaslot.toml", &token("/system"));
        fs::set_permissions(&home, fs::Permissions::from_mode(0o700)).unwrap();
        let nobody = rustix::process::Uid::from_raw(65534);
        let source = Source {
            places: places(Some(&own), &here.0.join("system")),
            own: Some(own),
            ..here.source()
        };
        let read = std::thread::spawn(move || {
            // Of this thread alone.
            rustix::thread::set_thread_res_uid(None, Some(nobody), None).ok()?;
            Some(source.read().unwrap_or_else(|problem| panic!("{problem}")).0)
        });
        match read.join().unwrap() {
            Some(config) => assert_eq!(config.tokens[0].path, Path::new("/system")),
            None => metaslot_testkit::not_run("module", "another user's home", "not root"),
        }
    }

    #[test]
    fn what_keeps_a_reader_waiting_is_no_drop_in() {
        let here = Directories::new("pipe");
        here.write("system/metaslot.toml", &token("/main"));
        for target in ["/dev/zero", "/tmp", "/nowhere"] {
            let link = here.0.join("system/metaslot.d/a.toml");
            symlink(target, &link).unwrap();
            let problem = here.problem();
            assert!(problem.starts_with("system/metaslot.d/a.toml: cannot be read: "), "{problem}");
            fs::remove_file(&link).unwrap();
        }
    }

    #[test]
    fn settings_of_providers_and_of_slot_0_are_joined_one_by_one() {
        let here = Directories::new("joined");
        let main = "[metaslot]\ntoken = \"web\"\n[provider.lanes]\nenabled = false\n\
                    [provider.awslc]\ndisable = [\"CKM_MD5\"]\n";
        let module = "[[foreign]]\nname = \"hsm\"\nmodule = \"/m.so\"\npolicy = \"legacy\"\n";
        let drop_in = "[metaslot]\nenabled = false\n[provider.lanes]\nenabled = true\n\
                       [provider.hsm]\nenabled = false\n";
        here.write("system/metaslot.toml", &format!("{main}{}", token("/main")))
            .write("system/metaslot.d/a.toml", drop_in)
            .write("system/metaslot.d/b.toml", module);
        let config = here.source().read().unwrap_or_else(|problem| panic!("{problem}")).0;
        assert!(!config.metaslot.enabled);
        assert_eq!(config.metaslot.keystore.token.as_deref(), Some("web"));
        assert!(config.lanes);
        assert_eq!(config.routes.disabled.len(), 1);
        let [hsm] = &config.foreign[..] else { panic!("one module") };
        assert_eq!((hsm.enabled, hsm.policy), (false, Policy::legacy()));
    }

    #[test]
    fn what_changes_among_drop_ins_is_among_what_is_looked_at() {
        let here = Directories::new("watched");
        let watched = || Vec::from_iter(here.source().files());
        let before = watched();
        for directory in ["own/metaslot.d", "system/metaslot.d"] {
            assert!(before.contains(&here.0.join(directory)), "{before:?}");
        }
        here.write("own/metaslot.d/a.toml", "");
        assert!(watched().contains(&here.0.join("own/metaslot.d/a.toml")));
    }
}
