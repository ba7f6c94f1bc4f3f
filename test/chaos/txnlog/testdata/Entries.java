import java.io.ByteArrayInputStream;
import java.io.File;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import org.apache.jute.BinaryInputArchive;
import org.apache.jute.Record;
import org.apache.zookeeper.ZooDefs.OpCode;
import org.apache.zookeeper.server.persistence.FileTxnLog;
import org.apache.zookeeper.server.persistence.TxnLog.TxnIterator;
import org.apache.zookeeper.txn.*;

/** Writes what ZooKeeper itself reads in the logs of one data directory, one transaction a line. */
public class Entries {
    public static void main(String[] arguments) throws Exception {
        FileTxnLog log = new FileTxnLog(new File(arguments[0], "version-2"));
        try (TxnIterator entries = log.read(0)) {
            if (entries.getHeader() == null) {
                return;
            }
            do {
                TxnHeader header = entries.getHeader();
                System.out.printf("%x %x %d %d:%s%n", header.getZxid(), header.getClientId(), header.getCxid(), header.getTime(),
                    changes(header.getType(), entries.getTxn()));
            } while (entries.next());
        }
        log.close();
    }

    private static String changes(int type, Record record) throws Exception {
        if (type != OpCode.multi) {
            return " " + change(type, record);
        }
        List<String> parts = new ArrayList<>();
        String failure = null;
        for (Txn part : ((MultiTxn) record).getTxns()) {
            Record read = empty(part.getType());
            read.deserialize(BinaryInputArchive.getArchive(new ByteArrayInputStream(part.getData())), "");
            String text = change(part.getType(), read);
            parts.add(text);
            // A server that logs while it takes a request back may log the type of an error and the content of what was asked for.
            if (failure == null && read instanceof ErrorTxn && ((ErrorTxn) read).getErr() < 0) {
                failure = text;
            }
        }
        return " " + (failure != null ? failure : String.join(", ", parts));
    }

    private static Record empty(int type) {
        switch (type) {
            case OpCode.create: case OpCode.create2: return new CreateTxn();
            case OpCode.createContainer: return new CreateContainerTxn();
            case OpCode.createTTL: return new CreateTTLTxn();
            case OpCode.delete: case OpCode.deleteContainer: return new DeleteTxn();
            case OpCode.setData: return new SetDataTxn();
            case OpCode.check: return new CheckVersionTxn();
            case OpCode.error: return new ErrorTxn();
            default: throw new IllegalArgumentException("type " + type);
        }
    }

    private static String change(int type, Record record) {
        if (record instanceof CreateTxn) {
            CreateTxn create = (CreateTxn) record;
            return "create " + create.getPath() + data(create.getData()) + (create.getEphemeral() ? " owned" : "");
        } else if (record instanceof CreateContainerTxn) {
            CreateContainerTxn create = (CreateContainerTxn) record;
            return "create " + create.getPath() + data(create.getData());
        } else if (record instanceof CreateTTLTxn) {
            CreateTTLTxn create = (CreateTTLTxn) record;
            return "create " + create.getPath() + data(create.getData());
        } else if (record instanceof DeleteTxn) {
            return "delete " + ((DeleteTxn) record).getPath();
        } else if (record instanceof SetDataTxn) {
            SetDataTxn set = (SetDataTxn) record;
            return "set " + set.getPath() + data(set.getData()) + "@" + set.getVersion();
        } else if (record instanceof SetACLTxn) {
            return "other " + ((SetACLTxn) record).getPath();
        } else if (record instanceof CheckVersionTxn) {
            return "other " + ((CheckVersionTxn) record).getPath();
        } else if (record instanceof CreateSessionTxn) {
            return "begin session " + ((CreateSessionTxn) record).getTimeOut();
        } else if (record instanceof CloseSessionTxn) {
            return "end session with " + ((CloseSessionTxn) record).getPaths2Delete();
        } else if (record instanceof ErrorTxn) {
            return "failed " + ((ErrorTxn) record).getErr();
        }
        throw new IllegalArgumentException("type " + type + ": " + record);
    }

    private static String data(byte[] data) {
        return data == null ? "" : "=" + new String(data, StandardCharsets.UTF_8);
    }
}
