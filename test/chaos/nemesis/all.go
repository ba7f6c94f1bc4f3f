package nemesis

// All is every nemesis, by the names that the test plan has for them. N9 (replies cut at every boundary), N14 (a hostile
// caller) and N16 (failpoints) are tests of their own.
var All = []Nemesis{
	{
		Name: "N1", About: "a follower cut from its leader goes on answering a sidecar that reaches no other",
		Realm: Servers, Forces: true, strike: cutFollower,
	},
	{Name: "N2", About: "the leader cut off, in one way or both, from one or all", Realm: Servers, strike: cutLeader},
	{
		Name: "N3", About: "leader, follower or all servers killed",
		Realm: Servers, Steady: true, Restarts: true, strike: killServers,
	},
	{Name: "N4", About: "the leader frozen for 0.5, 1.5 or 3 session timeouts", Realm: Servers, strike: freezeLeader},
	{
		Name: "N5", About: "a client stopped between check and act, its sidecar, or both",
		Realm: Clients, Forces: true, Stops: true, strike: stopBetween,
	},
	{
		Name: "N6", About: "a server that accepts and never answers, and storms of resets",
		Realm: Servers, Steady: true, strike: hangServer,
	},
	{
		Name: "N7", About: "a sidecar's ways to the ensemble cut, slow, sliced, cut at writes, or losing half of all packets",
		Realm: Sidecars, strike: cutSidecar,
	},
	{
		Name: "N8", About: "clients' ways to a sidecar dropped, unread, stalled, reset, cut when idle, or told to go away",
		Realm: Clients, strike: cutCalls,
	},
	{
		Name: "N10", About: "a sidecar killed and started again at once",
		Realm: Sidecars, Forces: true, strike: killSidecar,
	},
	{Name: "N10c", About: "clients killed and replaced", Realm: Clients, Forces: true, strike: killClients},
	{Name: "N11", About: "sidecars stopped in order and started again", Realm: Sidecars, Forces: true, strike: stopSidecars},
	{
		Name: "N12", About: "the servers restarted one after the other",
		Realm: Servers, Steady: true, Restarts: true, strike: rollServers,
	},
	{
		Name: "N13", About: "strange children, a forbidden directory, empty directories deleted at once",
		Realm: Clients, strike: meddle,
	},
	{
		Name: "N13c", About: "a sidecar started with a wrong password for the ensemble",
		Realm: Sidecars, Adjust: withCredentials, strike: mistakeCredentials,
	},
	{
		Name: "N15", About: "a sidecar started with its clocks shifted by more than a day; needs root",
		Realm: Sidecars, Forces: true, strike: shiftClocks,
	},
	{
		Name: "N17", About: "a server whose disk is full",
		Realm: Servers, Steady: true, Restarts: true, strike: fillDiskOfServer,
	},
	{
		Name: "N17c", About: "a stranger takes all connections that servers give to the sidecars' address",
		Realm: Servers, Adjust: withFewConnections, strike: takeConnections,
	},
	{
		Name: "N18", About: "everything on one host suspended for two session timeouts",
		Realm: Sidecars, Forces: true, Slow: true, strike: suspendHost,
	},
	{
		Name: "N19", About: "a lease that ends while a client that holds with it, or only its connection, is frozen",
		Realm: Clients, Forces: true, strike: endLease,
	},
	{
		Name: "N20", About: "a hold that an operator ends while its client, or only its connection, is frozen",
		Realm: Clients, Forces: true, strike: force,
	},
	{
		Name: "N21", About: "a machine that sleeps for longer than its leases last; the ensemble takes no notice",
		Realm: Sidecars, Long: true, Adjust: withSleep, strike: sleep,
	},
	{
		Name: "N22", About: "a sidecar killed, or stopped so that it hands over, and started again while its leases can be resumed",
		Realm: Sidecars, Long: true, Resuming: true, strike: restartSoon,
	},
	{
		Name: "N23", About: "a sidecar killed, or stopped so that it hands over, and started again when its leases are over, or about to be",
		Realm: Sidecars, Forces: true, Resuming: true, strike: restartLate,
	},
	{
		Name: "N24", About: "a sidecar started beside one that is frozen, which goes on then, or is killed",
		Realm: Sidecars, Forces: true, Resuming: true, strike: startBeside,
	},
	{
		Name: "N25", About: "a sidecar whose log is not read, and which loses the ensemble meanwhile",
		Realm: Sidecars, Forces: true, Slow: true, strike: deafen,
	},
	{
		Name: "N26", About: "a sidecar whose state directory hangs, and which loses the ensemble meanwhile; needs root",
		Realm: Sidecars, Forces: true, Slow: true, Resuming: true, Adjust: withStateDisks, strike: hangDisk,
	},
	{Name: "N27", About: "a sidecar with a tenth of a processor", Realm: Sidecars, strike: starve},
	{
		Name: "N28", About: "a follower that carries out late what a sidecar has asked for again at another server",
		Realm: Servers, strike: delayWrites,
	},
	{
		Name: "N29", About: "a sidecar whose audit log's disk hangs or is full, and which loses the ensemble meanwhile; needs root",
		Realm: Sidecars, Forces: true, Slow: true, Adjust: withAuditDisks, strike: loseAudit,
	},
	{
		Name: "N30", About: "a sidecar whose name server hangs while its connections are reset; needs root",
		Realm: Sidecars, Forces: true, Adjust: withNames, strike: hangNames,
	},
}
