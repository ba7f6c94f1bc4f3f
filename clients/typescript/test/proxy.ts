/** A TCP proxy that cuts what goes through it, as real ones do. */

import { once } from "node:events";
import { type AddressInfo, type Socket, createConnection, createServer } from "node:net";

const PREFACE = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".length;
const [HEADERS, RST_STREAM] = [1, 3];
const [INTERNAL_ERROR, CANCEL] = [2, 8];

/** One connection of a client, and the one to the sidecar that is for it. */
class Connection {
  /** The HTTP/2 stream that the client has begun last. */
  private newest = 0;
  private unread = Buffer.alloc(0);
  private skip = PREFACE;

  constructor(
    private readonly client: Socket,
    private readonly sidecar: Socket,
  ) {
    client.on("data", (sent: Buffer) => this.note(sent));
    client.pipe(sidecar);
    sidecar.pipe(client);
    for (const socket of [client, sidecar]) {
      socket.on("error", () => undefined).on("close", () => this.close());
    }
  }

  /** Notes which streams the client begins. */
  private note(sent: Buffer): void {
    this.unread = Buffer.concat([this.unread, sent]);
    if (this.unread.length >= this.skip) {
      this.unread = this.unread.subarray(this.skip);
      this.skip = 0;
    }
    while (this.skip === 0 && this.unread.length >= 9 && this.unread.length >= 9 + this.unread.readUIntBE(0, 3)) {
      if (this.unread[3] === HEADERS) {
        this.newest = Math.max(this.newest, this.unread.readUInt32BE(5));
      }
      this.unread = this.unread.subarray(9 + this.unread.readUIntBE(0, 3));
    }
  }

  /** Ends the newest stream without a reason, as a proxy does that gives it up. */
  reset(): void {
    for (const [socket, why] of [
      [this.client, INTERNAL_ERROR],
      [this.sidecar, CANCEL],
    ] as const) {
      const frame = Buffer.from([0, 0, 4, RST_STREAM, 0, 0, 0, 0, 0, 0, 0, 0, why]);
      frame.writeUInt32BE(this.newest, 5);
      socket.write(frame);
    }
  }

  close(): void {
    this.client.destroy();
    this.sidecar.destroy();
  }
}

/** Listens on a port, and passes all on to a Unix socket. */
export class Proxy {
  address = "";
  private readonly connections = new Set<Connection>();
  private readonly server = createServer();

  static async open(socket: string): Promise<Proxy> {
    const proxy = new Proxy();
    proxy.server.on("connection", (client) => {
      const connection = new Connection(client, createConnection(socket));
      proxy.connections.add(connection);
      client.on("close", () => proxy.connections.delete(connection));
    });
    proxy.server.listen(0, "127.0.0.1");
    await once(proxy.server, "listening");
    proxy.address = `127.0.0.1:${(proxy.server.address() as AddressInfo).port}`;
    return proxy;
  }

  closeConnections(): void {
    this.connections.forEach((connection) => connection.close());
  }

  resetStreams(): void {
    this.connections.forEach((connection) => connection.reset());
  }

  close(): void {
    this.server.close();
    this.closeConnections();
  }
}
