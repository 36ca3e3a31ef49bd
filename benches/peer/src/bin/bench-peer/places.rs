//! Where a case runs: its brokers, how they are spoken to, and its input.
use crate::records::{Shape, fill};
use crate::support::broker::{Cluster, Options};
use plimsoll_peer::Outcome;

/// Partitions and brokers of the case `partitions200`.
const MANY: (u32, usize) = (200, 3);

/// Brokers and an input topic.
pub(crate) struct Place {
    /// For administration, loading and checking: plaintext.
    pub(crate) bootstrap: String,
    /// For what is measured.
    pub(crate) measured: String,
    /// A file with the authority of the brokers' certificates; empty: plaintext.
    pub(crate) authority: String,
    /// `compression.type` of input and output.
    pub(crate) compression: &'static str,
    pub(crate) input: String,
    pub(crate) partitions: u32,
    /// Live as long as this.
    _cluster: Option<Cluster>,
    _files: Option<tempfile::TempDir>,
}

impl Place {
    /// The place of a case, with its input written: `lz4` on the same broker, `tls` on one of its own, `partitions200`
    /// on three; all others as they are asked for.
    pub(crate) fn of(case: &str, cluster: &Cluster, shape: &Shape) -> Outcome<Self> {
        let mut place = Self {
            bootstrap: cluster.bootstrap().to_owned(),
            measured: cluster.bootstrap().to_owned(),
            authority: String::new(),
            compression: if case == "lz4" { "lz4" } else { "none" },
            input: format!("input-{case}"),
            partitions: shape.partitions,
            _cluster: None,
            _files: None,
        };
        match case {
            "tls" => place.move_behind_tls()?,
            "partitions200" => {
                let options = Options { heap_mib: 1_024, full_jit: true, ..Options::brokers(MANY.1) };
                let options = options.set("default.replication.factor", "1");
                let own = Cluster::start(&options).ok_or("three brokers cannot be started")?;
                (place.bootstrap, place.measured) = (own.bootstrap().to_owned(), own.bootstrap().to_owned());
                (place.partitions, place._cluster) = (MANY.0, Some(own));
            }
            _ => {}
        }
        eprintln!("{case}: writing {} records", shape.records);
        let shape = Shape { partitions: place.partitions, ..shape.clone() };
        fill(&place.bootstrap, &place.input, &shape, place.compression)?;
        Ok(place)
    }

    #[cfg(feature = "ssl")]
    pub(crate) fn move_behind_tls(&mut self) -> Outcome<()> {
        use crate::support::secured::{Listener, secured};
        let kafka = secured().ok_or("a broker cannot be started")?;
        let files = tempfile::tempdir()?;
        let authority = files.path().join("authority.pem");
        std::fs::write(&authority, kafka.authority.pem())?;
        self.bootstrap = kafka.cluster.bootstrap().to_owned();
        self.measured = kafka.bootstrap(Listener::Ssl);
        self.authority = authority.display().to_string();
        self._files = Some(files);
        Ok(())
    }

    #[cfg(not(feature = "ssl"))]
    pub(crate) fn move_behind_tls(&mut self) -> Outcome<()> {
        Err("the case `tls` needs the feature `ssl`".into())
    }
}
