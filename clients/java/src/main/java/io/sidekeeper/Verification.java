package io.sidekeeper;

/**
 * How it stood with a ticket's hold at some moment of the call.
 *
 * @param held whether the lock was held with the ticket's fencing token
 * @param currentToken the fencing token that the lock was held with: of several holders, the first
 *     one's; 0 if the lock had no holder
 */
public record Verification(boolean held, long currentToken) {}
