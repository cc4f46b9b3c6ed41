package flags

// PolicyFlags are the flags that make a policy. Each has its variable, RETRY_ and its name in capitals, and most are keys of the config
// file. An example is for its schema.
type PolicyFlags struct {
	Policy      *string   `short:"p" group:"Policy" placeholder:"NAME" example:"default" help:"Start from a named policy: retry policy list shows them."`
	Attempts    *Count    `short:"n" group:"Policy" placeholder:"N" example:"8" help:"All attempts, the first included; 0 = no limit. Default 5."`
	Retries     *Count    `group:"Policy" placeholder:"N" example:"4" help:"The same, without the first one."`
	Backoff     *string   `short:"b" group:"Policy" placeholder:"SPEC" example:"exp:2s..2m" help:"Delays: constant:5s, linear:2s, exp:1s..30s, exp:1s*1.5, fib:1s, poly:15s+n^4, list:1s,5s,1m, buckets:3, expr:15+n^4, or a preset. Default exp:1s..1m."`
	Jitter      *string   `short:"j" group:"Policy" placeholder:"SPEC" example:"30%" help:"phase (default), none, full, equal, decorrelated, 30%, add:5s, add:1s..5s, add:30s*n."`
	Timeout     *Duration `short:"t" group:"Policy" placeholder:"TIME" example:"30s" help:"Stop an attempt that takes longer: TERM to its process group, then KILL."`
	KillAfter   *Duration `group:"Policy" placeholder:"TIME" example:"10s" help:"Between TERM and KILL. Default 5s."`
	Budget      *Duration `short:"B" group:"Policy" placeholder:"TIME" example:"30m" help:"For everything together, waits included."`
	Deadline    *Moment   `group:"Policy" placeholder:"WHEN" help:"A budget by the clock: 23:30, or RFC 3339."`
	ResetAfter  *Duration `group:"Policy" placeholder:"TIME" example:"10m" help:"An attempt that ran this long starts the backoff anew."`
	Consecutive *Count    `group:"Policy" placeholder:"N" example:"3" help:"Succeed after so many successes in a row."`
	RetryOn     []string  `sep:"none" group:"Policy" placeholder:"LIST" example:"1,75" help:"Retry these outcomes only: 1,75,100-120,SIGSEGV,signal,timeout,any, or an expression such as 'exit == 75'."`
	StopOn      []string  `sep:"none" group:"Policy" placeholder:"LIST" example:"2" help:"Never retry these."`
	SuccessOn   []string  `sep:"none" group:"Policy" placeholder:"LIST" example:"0,3" help:"These, and only these, are a success."`
}
