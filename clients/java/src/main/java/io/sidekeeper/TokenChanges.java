package io.sidekeeper;

import io.sidekeeper.fencing.v1.WatchResponse;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** Keeps the tokens of each lock growing, also across streams, each of which sees to its own. */
final class TokenChanges {
  private final Map<String, CurrentToken> told = new LinkedHashMap<>();
  private final Map<String, Long> largest = new LinkedHashMap<>();

  /** Gives what is known anew; of null, when the stream has ended, what it gave, as stale. */
  @Nullable List<CurrentToken> of(@Nullable WatchResponse message) {
    List<CurrentToken> news = new ArrayList<>();
    if (message == null) {
      told.values().forEach(of -> add(news, of.lock(), of.fencingToken(), true));
    } else {
      message
          .getTokensList()
          .forEach(of -> add(news, of.getLock(), of.getFencingToken(), of.getStale()));
    }
    return news.isEmpty() ? null : news;
  }

  private void add(List<CurrentToken> news, String lock, long token, boolean stale) {
    long most = largest.getOrDefault(lock, 0L);
    CurrentToken before = told.get(lock);
    CurrentToken now =
        before != null && token != 0 && token < most
            ? new CurrentToken(lock, before.fencingToken(), true)
            : new CurrentToken(lock, token, stale);
    largest.put(lock, Math.max(most, token));
    if (!now.equals(told.put(lock, now))) {
      news.add(now);
    }
  }
}
