//! PgBouncer: the poolers of the budget, and files that none of them claims.

use super::super::count::{At, Count, Source};
use super::super::sources::{Fault, Manifest, PgBouncer, Scaler, Surge, beside};
use super::super::spec::{Pooler, Unknown};
use super::{Join, Made};
use crate::yaml::Place;

impl Join<'_> {
    pub(super) fn poolers(&mut self, scaled: &[Option<&Scaler>]) -> Result<(), Fault> {
        let all = self.all;
        let mut claimed: Vec<&str> = Vec::new();
        for spec in all.specs.iter().flat_map(|spec| &spec.poolers) {
            let bouncer = match &spec.pgbouncer {
                Some((path, at)) => {
                    let path = beside(&at.file, path);
                    let found = all.bouncers.iter().find(|one| one.file == path);
                    Some(found.ok_or_else(|| {
                        Fault::new(
                            &at.file,
                            at.place,
                            format!("{path} isn't in the input, or no pgbouncer.ini"),
                        )
                    })?)
                }
                None => None,
            };
            claimed.extend(bouncer.map(|one| one.file.as_str()));
            let manifest = all.manifests.iter().position(|m| m.name == spec.name);
            let mut made = match manifest {
                Some(at) => self.pods(&spec.name, at, scaled),
                None => alone(bouncer, Some(spec.at.clone())),
            };
            if let Some((pods, at)) = &spec.pods {
                made.pods = Count::known(*pods);
                made.from = vec![Source::said("pods", pods, at.clone())];
                made.unknown = None;
            }
            if let Some((surge, at)) = &spec.surge {
                made.surge = *surge;
                made.surge_from = Some(Source::said("surge", surge.words(), at.clone()));
            }
            let target = spec.target.clone();
            self.pooler(
                spec.name.clone(),
                target,
                made,
                bouncer,
                Some(spec.at.clone()),
            )?;
        }
        for bouncer in &all.bouncers {
            let is_part = all
                .bouncers
                .iter()
                .any(|one| one.parts.contains(&bouncer.file));
            if claimed.contains(&bouncer.file.as_str()) || is_part {
                continue;
            }
            let file = bouncer.file.rsplit('/').next().unwrap_or(&bouncer.file);
            let programs = bouncer.programs();
            let runs = |m: &Manifest| programs.contains(&m.name.as_str());
            let (name, made) = match all.manifests.iter().position(runs) {
                Some(at) => {
                    let name = &all.manifests[at].name;
                    (name.as_str(), self.pods(name, at, scaled))
                }
                None => {
                    let name = bouncer.map.as_deref().unwrap_or(file);
                    (name, alone(Some(bouncer), None))
                }
            };
            self.pooler(name.to_owned(), None, made, Some(bouncer), None)?;
        }
        Ok(())
    }

    fn pooler(
        &mut self,
        name: String,
        target: Option<(String, At)>,
        made: Made,
        bouncer: Option<&PgBouncer>,
        at: Option<At>,
    ) -> Result<(), Fault> {
        let mut made = made;
        if let Some(pods) = self.options.set(&name, "pods") {
            made.pods = Count::known(pods);
            made.from = vec![Source::asked("pods (--set)", pods)];
            made.unknown = None;
        }
        if let Some(surge) = self.options.set(&name, "surge") {
            made.surge = Surge::Number(surge);
            made.surge_from = Some(Source::asked("surge (--set)", surge));
        }
        let mut from = made.from;
        let mut max_clients = None;
        let cap = match bouncer {
            Some(bouncer) => {
                let (cap, sources, unknown) = bouncer.cap()?;
                from.extend(sources);
                self.budget.unknowns.extend(
                    unknown.map(|what| Unknown {
                        what: format!("pooler {name}: {what}"),
                        settle:
                            "max_db_connections of each database, or an auth_file with everybody"
                                .into(),
                        at: Some(At::new(&bouncer.file, Place { line: 1, column: 1 })),
                    }),
                );
                max_clients = Some(bouncer.number("max_client_conn", 100)?);
                cap
            }
            None => {
                self.budget.unknowns.push(Unknown {
                    what: format!("pools of pooler {name}"),
                    settle: "pgbouncer: PATH in budget.yaml".into(),
                    at: at.clone(),
                });
                Count::at_least(0)
            }
        };
        let (by_role, by_database) = match bouncer {
            Some(bouncer) => bouncer.shares()?,
            None => Default::default(),
        };
        from.extend(made.surge_from);
        self.budget.unknowns.extend(made.unknown);
        self.budget.poolers.push(Pooler {
            target: target.as_ref().map(|(name, _)| name.clone()),
            target_at: target.map(|(_, at)| at),
            surge: made.surge.of(made.pods),
            drain: match made.drains {
                true => made.pods,
                false => Count::ZERO,
            },
            pods: made.pods,
            cap,
            by_role,
            by_database,
            file: bouncer.map(|bouncer| bouncer.file.clone()),
            max_clients,
            name,
            from,
        });
        Ok(())
    }
}

/// Instances where nothing else says how many: as many as list each other as peers, else one.
fn alone(bouncer: Option<&PgBouncer>, at: Option<At>) -> Made {
    let peers = bouncer.map(|one| one.peers.as_slice()).unwrap_or_default();
    let (pods, source) = match peers {
        [first, _, ..] => {
            let count = peers.len() as u64;
            (count, Source::said("pods ([peers])", count, first.clone()))
        }
        _ => (1, Source::assumed("pods", 1, at)),
    };
    let mut unknown = None;
    if let Some(bouncer) = bouncer
        && peers.len() < 2
        && bouncer.word("so_reuseport") == Some("1")
    {
        unknown = Some(Unknown {
            what: format!(
                "how many processes share the port ({}: so_reuseport)",
                bouncer.file
            ),
            settle: "pods of the pooler in budget.yaml, or [peers]".into(),
            at: bouncer.at("so_reuseport"),
        });
    }
    Made {
        pods: Count {
            at_least: pods,
            exact: unknown.is_none(),
        },
        from: vec![source],
        surge: Surge::None,
        surge_from: None,
        drains: false,
        unknown,
    }
}
