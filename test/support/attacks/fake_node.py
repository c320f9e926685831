"""Code that attacks with a fake Erlang node share: its listening socket, and an epmd that names it."""
import socket
import threading


def listener() -> socket.socket:
    """Returns a socket that the current effective user has made, and that listens on loopback."""
    made = socket.socket()
    made.bind(("127.0.0.1", 0))
    made.listen(5)
    return made


def epmd(asked: socket.socket, port: int) -> None:
    """Answers like an epmd that has one node."""
    while True:
        connected, _ = asked.accept()
        connected.recv(10)
        connected.sendall(b"\0\0\0\0" + f"name root at port {port}\n".encode())
        connected.close()


def report(node: socket.socket) -> None:
    """Prints `connected` for each connection."""
    while True:
        node.accept()
        print("connected", flush=True)


def serve(node: socket.socket, asked: socket.socket) -> None:
    """Answers on both sockets, in separate threads."""
    threading.Thread(target=epmd, args=(asked, node.getsockname()[1]), daemon=True).start()
    threading.Thread(target=report, args=(node,), daemon=True).start()
