//! PgBouncer: the poolers of the budget, and files that none of them claims.

use super::super::count::{At, Count, Source};
use super::super::sources::{Fault, PgBouncer, Scaler, Surge, beside};
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
                None => Made {
                    pods: Count::known(1),
                    from: vec![Source::assumed("pods", 1, Some(spec.at.clone()))],
                    surge: Surge::None,
                    surge_from: None,
                    drains: false,
                    unknown: None,
                },
            };
            if let Some((pods, at)) = &spec.pods {
                made.pods = Count::known(*pods);
                made.from = vec![Source::said("pods", pods, at.clone())];
                made.unknown = None;
            }
            if let Some(pods) = self.options.set(&spec.name, "pods") {
                made.pods = Count::known(pods);
                made.from = vec![Source::asked("pods (--set)", pods)];
            }
            if let Some((surge, at)) = &spec.surge {
                made.surge = *surge;
                made.surge_from = Some(Source::said("surge", "", at.clone()));
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
            if claimed.contains(&bouncer.file.as_str()) {
                continue;
            }
            let name = bouncer
                .file
                .rsplit('/')
                .next()
                .unwrap_or(&bouncer.file)
                .to_owned();
            let made = Made {
                pods: Count::known(1),
                from: vec![Source::assumed("pods", 1, None)],
                surge: Surge::None,
                surge_from: None,
                drains: false,
                unknown: None,
            };
            self.pooler(name, None, made, Some(bouncer), None)?;
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
        let mut from = made.from;
        let (cap, max_clients) = match bouncer {
            Some(bouncer) => {
                let (cap, sources, unknown) = bouncer.cap()?;
                from.extend(sources);
                self.budget.unknowns.extend(unknown.map(|what| Unknown {
                    what: format!("pooler {name}: {what}"),
                    settle: "an auth_file beside it, or max_db_connections".into(),
                    at: Some(At::new(&bouncer.file, Place { line: 1, column: 1 })),
                }));
                (cap, bouncer.number("max_client_conn", 100)?)
            }
            None => {
                self.budget.unknowns.push(Unknown {
                    what: format!("pools of pooler {name}"),
                    settle: "pgbouncer: PATH in budget.yaml".into(),
                    at: at.clone(),
                });
                (Count::at_least(0), 100)
            }
        };
        from.extend(made.surge_from);
        self.budget.unknowns.extend(made.unknown);
        self.budget.poolers.push(Pooler {
            target: target.as_ref().map(|(name, _)| name.clone()),
            target_at: target.map(|(_, at)| at),
            surge: made.surge.of(made.pods),
            pods: made.pods,
            cap,
            max_clients,
            name,
            from,
        });
        Ok(())
    }
}
