/**
 * Runs inside the sandbox, before the program: waits on descriptor 3 for requests (JSON lines) and answers on 4. It is
 * in the program's hands and trusted with nothing: what it is told, the program may know, and what it says, the program
 * may have said. Python 3.8 or newer.
 */
export const PYTHON_DRIVER = String.raw`
import ast, builtins, json, linecache, os, sys, traceback, types

def driver():
    dumps, loads, write = json.dumps, json.loads, os.write
    os.set_inheritable(3, False)
    os.set_inheritable(4, False)
    requests = os.fdopen(3, "rb")
    module = types.ModuleType("__main__")
    module.__builtins__ = builtins
    sys.modules["__main__"] = module
    scope = module.__dict__
    cells = 0

    def reply(answer):
        data = dumps(answer).encode() + b"\n"
        while data:
            data = data[write(4, data):]

    def explain(error):
        trace = error.__traceback__
        while trace is not None and trace.tb_frame.f_code.co_filename == "<string>":
            trace = trace.tb_next
        return "".join(traceback.format_exception(type(error), error, trace))

    def failed(error):
        return {"ending": "memory" if isinstance(error, MemoryError) else "error", "error": explain(error)}

    def remember(name, source):
        linecache.cache[name] = (len(source), None, source.splitlines(True), name)

    def run(request):
        for name, text in request["files"].items():
            os.makedirs(os.path.dirname(name) or ".", exist_ok=True)
            with open(name, "w", encoding="utf-8", newline="") as file:
                file.write(text)
        source = request["source"]
        path = os.path.join(os.getcwd(), "main.py")
        with open(path, "w", encoding="utf-8", newline="") as file:
            file.write(source)
        with open(".stdin", "w+b") as file:
            file.write(request["stdin"].encode("utf-8", "replace"))
            file.seek(0)
            os.dup2(file.fileno(), 0)
        os.remove(".stdin")
        sys.stdin = open(0, "r", encoding="utf-8", errors="replace", closefd=False)
        sys.argv = ["main.py"] + request["args"]
        scope["__file__"] = path
        remember(path, source)
        try:
            exec(compile(source, path, "exec"), scope)
        except SystemExit:
            raise
        except BaseException as error:
            answer = failed(error)
            sys.stderr.write(answer.pop("error"))
            reply(answer)
            sys.exit(1)

    def cell(request):
        nonlocal cells
        cells += 1
        source, name = request["source"], "<cell %d>" % cells
        remember(name, source)
        tree = compile(source, name, "exec", ast.PyCF_ONLY_AST)
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, name, "exec"), scope)
        if last is None:
            return {"ending": "ok"}
        value = eval(compile(ast.Expression(last.value), name, "eval"), scope)
        return {"ending": "ok"} if value is None else {"ending": "ok", "value": repr(value)}

    def call(request):
        parts = request["name"].split(".")
        if parts[0] not in scope:
            return {"ending": "error", "error": "NameError: the program defines no '%s'" % parts[0]}
        target = scope[parts[0]]
        for part in parts[1:]:
            target = getattr(target() if isinstance(target, type) else target, part)
        return {"ending": "ok", "value": dumps(target(*request["args"]), allow_nan=False)}

    reply({"ready": True})
    for line in requests:
        request = loads(line)
        if request["op"] == "run":
            return run(request)
        try:
            answer = cell(request) if request["op"] == "exec" else call(request)
        except BaseException as error:
            answer = failed(error)
        mark = request["mark"].encode()
        for number, stream in ((1, sys.stdout), (2, sys.stderr)):
            try:
                stream.flush()
            except Exception:
                pass  # the program closed or replaced it; its mark follows all the same
            try:
                write(number, mark)
            except OSError:
                pass
        reply(answer)

driver()
`;
