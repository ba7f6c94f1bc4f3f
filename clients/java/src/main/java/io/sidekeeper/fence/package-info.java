/**
 * Keeps late writes out of what a lock protects. A program that was frozen while it held a lock
 * goes on where it stood, and writes after the next holder. Nothing that it does itself prevents
 * that. So the holder of a lock sends its tickets along. What is written to refuses a ticket that
 * is older than one that it has seen.
 *
 * <p>The caller's half sends the tickets of the locks that are held around a call on its thread, as
 * in the body of {@code Client.withLock}: {@link io.sidekeeper.fence.TicketInterceptor} for gRPC,
 * {@link io.sidekeeper.fence.FenceHeader} for HTTP. The other half is a {@link
 * io.sidekeeper.fence.Gate}, in the service that guards something: it refuses stale calls, by a
 * mark in a {@link io.sidekeeper.fence.Store} that survives restarts; {@link
 * io.sidekeeper.fence.GateInterceptor} asks it in gRPC. Where the effect is a transaction in a
 * database, {@link io.sidekeeper.fence.SqlDialect} compares the token in that transaction, which is
 * better: a gate looks when a call arrives, and the effect comes later.
 *
 * <p>What is said of headers, answers and marks here is the same for the clients of all languages.
 */
@NullMarked
package io.sidekeeper.fence;

import org.jspecify.annotations.NullMarked;
