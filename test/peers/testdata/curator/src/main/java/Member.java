import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.TreeMap;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.nodes.GroupMember;
import org.apache.curator.retry.ExponentialBackoffRetry;

/**
 * Curator's own group member under the command of a test: one command a line on standard input, one answer a line on
 * standard output. group.py understands the same.
 *
 * <pre>
 * join PATH MEMBER TEXT   joined: it is a member, and says TEXT about itself
 * members                 who it sees, in the order of names
 * leave                   left
 * </pre>
 */
public final class Member {
    private final CuratorFramework client;
    private GroupMember member;

    private Member(String servers) throws InterruptedException {
        client = CuratorFrameworkFactory.newClient(servers, 10_000, 10_000, new ExponentialBackoffRetry(100, 5));
        client.start();
        client.blockUntilConnected();
    }

    public static void main(String[] arguments) throws Exception {
        Member member = new Member(arguments[0]);
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            System.out.println(member.answer(line.split(" ")));
        }
        member.client.close();
    }

    private String answer(String[] words) {
        switch (words[0]) {
            case "join":
                member = new GroupMember(client, words[1], words[2], words[3].getBytes(StandardCharsets.UTF_8));
                member.start();
                return "joined";
            case "members":
                return String.join(" ", new TreeMap<>(member.getCurrentMembers()).keySet());
            case "leave":
                member.close();
                return "left";
            default:
                return "what is " + words[0] + "?";
        }
    }
}
