package flags

// PolicyFlags are the flags that make a policy. Each has its variable, RETRY_ and its name in capitals, and most are keys of the config
// file. An example is for its schema.
type PolicyFlags struct {
	Policy      *string `short:"p"`
	Attempts    *Count  `short:"n"`
	Retries     *Count
	Backoff     *string   `short:"b"`
	Jitter      *string   `short:"j"`
	Timeout     *Duration `short:"t"`
	KillAfter   *Duration
	Budget      *Duration `short:"B"`
	Deadline    *Moment
	ResetAfter  *Duration
	Consecutive *Count
	RetryOn     []string `sep:"none"`
	StopOn      []string `sep:"none"`
	SuccessOn   []string `sep:"none"`
}
