// Package simulation is a ZooKeeper ensemble of three servers in virtual time, for tests inside a testing/synctest bubble. Its
// clients speak ZooKeeper's wire protocol over connections in memory, so what is tested is the session layer itself.
//
// It is made for what one server cannot show. Each server has a log and a state of its own, which lags behind. A follower
// tells the leader of the sessions it has heard of only when it answers the leader's pings, every tick/2. The leader ends
// sessions by whole ticks. Connections between servers keep their order and stall, in one direction or both; what has
// stalled arrives in a burst, or never if an end has given the connection up. Servers die, come back and freeze. So these
// arise by construction:
//
//   - A follower that is cut off answers reads and pings for syncLimit ticks, while the leader ends its sessions.
//   - A follower that dies takes with it whom it has heard of since the last ping, so that the leader ends a session sooner
//     than its timeout after the last answer.
//   - A request lingers in a server that is cut off, and arrives when its session is attached elsewhere and has gone on: it is
//     refused. One of a session that nobody has taken elsewhere is carried out.
//   - A leader that was frozen for longer than a session's timeout ends the session as it thaws, before it hears that the
//     session was alive all the time.
//
// Everything happens in events, one after the other, in one goroutine. Delays come from a seed, one stream of numbers for
// each direction of each link, so that a seed brings about the same faults and delays each time. What the goroutines of the
// tested code do in one and the same instant is up to Go's scheduler.
//
// What it simplifies: elections are decided by one who knows all logs and not by votes; a follower takes over the leader's
// whole log instead of what it lacks; there are no observers and no snapshots, and disks neither fail nor delay.
package simulation
