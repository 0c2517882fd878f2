"""The channel of PostgreSQL on which a commit that staged a job says so; whoever listens looks for itself as well."""

STAGED = "staged_jobs"
