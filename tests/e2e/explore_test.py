"""`shorthand explore`: what its server answers, beside the commands that say the same."""

import http.client
import json
import os
import pathlib
import re
import signal
import struct
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.parse

SHORTHAND = ""
SOURCE = pathlib.Path(os.environ.get("SHORTHAND_SOURCE_DIR", "."))
DATA = pathlib.Path(os.environ.get("SHORTHAND_DATA", SOURCE / "../shared/data"))
STORIES = DATA / "models" / "stories260Ktok512.gguf"
TEXT = DATA / "text" / "tinystories_sample_en.txt"
MOST_BYTES = 600_000  # of the page


class Server:
    def __init__(self, *arguments):
        self.process = subprocess.Popen([SHORTHAND, "explore", "--port", "0", "--no-browser",
                                         *map(str, arguments)], stdout=subprocess.PIPE, text=True)
        url = urllib.parse.urlsplit(self.process.stdout.readline().strip())
        self.host, self.port = url.hostname, url.port

    def get(self, path, **headers):
        return self.ask("GET", path, **headers)

    def ask(self, method, path, **headers):
        connection = http.client.HTTPConnection(self.host, self.port, timeout=20)
        connection.request(method, path, headers=headers)
        answer = connection.getresponse()
        body = answer.read()
        connection.close()
        return answer, body

    def json(self, path):
        answer, body = self.get(path)
        assert answer.status == 200, (answer.status, body)
        return json.loads(body)

    def live(self, done=lambda state: not state["running"]):
        """The state of the live runs, once it is as wished."""
        for _ in range(2000):
            state = self.json("/api/live")
            if done(state):
                return state
            time.sleep(0.02)
        raise AssertionError(state)

    def measure(self, recipe):
        answer, body = self.ask("POST", "/api/live?" + urllib.parse.urlencode({"kv": recipe}))
        return answer.status, json.loads(body)

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(timeout=20)
        self.process.stdout.close()
        return code


def report(*arguments):
    done = subprocess.run([SHORTHAND, *map(str, arguments), "--json"], capture_output=True,
                          text=True, timeout=60, check=True)
    return json.loads(done.stdout)


def unpacked(body):
    """The head of a slice and its arrays, [tokens][channels] each."""
    (length,) = struct.unpack_from("<I", body)
    head = json.loads(body[4:4 + length])
    tokens = head["tokens"][1] - head["tokens"][0] + 1
    channels = head["channels"][1] - head["channels"][0] + 1
    arrays, at = [], 4 + length
    while at < len(body):
        values = struct.unpack_from(f"<{tokens * channels}f", body, at)
        arrays.append([list(values[t * channels:(t + 1) * channels]) for t in range(tokens)])
        at += 4 * tokens * channels
    return head, arrays


class ExploreTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server()

    @classmethod
    def tearDownClass(cls):
        assert cls.server.end() == 0

    def test_without_a_model_there_is_a_made_up_head(self):
        info = self.server.json("/api/info")
        self.assertIsNone(info["model"])
        (source,) = info["sources"]
        self.assertEqual((source["name"], source["text"]), ("synthetic", "synthetic"))
        keys, values = source["heads"]
        self.assertEqual((keys["side"], values["side"]), ("K", "V"))
        self.assertGreater(keys["token_error"], 2 * keys["channel_error"], "two loud channels")
        self.assertLess(values["token_error"], values["channel_error"], "loud tokens")
        self.assertEqual(keys["first_channel"], 0, "channel 11 is the loudest")
        self.assertIn("Llama-3-8B", info["shapes"])
        self.assertIn({"name": "q8_0", "canonical": "kv=q8_0"},
                      [{"name": p["name"], "canonical": p["canonical"]} for p in info["presets"]])

    def test_the_synthetic_head_has_the_contrast_of_a_textbook(self):
        place = "/api/slice?source=synthetic&tokens=64..87&channels=0..15&exact=4"
        errors = {}
        for side in ("K", "V"):
            answer, body = self.server.get(f"{place}&side={side}&code=u2/tok&code=u2/ch")
            self.assertEqual(answer.status, 200)
            errors[side] = [coded["relative_error"] for coded in unpacked(body)[0]["codes"]]
        self.assertEqual([f"{100 * error:.0f} %" for error in errors["K"]], ["48 %", "16 %"])
        self.assertLess(*errors["V"])

    def test_a_code_says_what_shares_its_scales(self):
        codes = ("u4/tok", "u4/ch", "u4/tok32", "u4/ch32", "u4/page", "u4/layer", "f16")
        answer, body = self.server.get("/api/slice?tokens=100..299&channels=0..63&exact=10" +
                                       "".join(f"&code={code}" for code in codes))
        self.assertEqual(answer.status, 200, body)
        found = {coded["code"]: coded for coded in unpacked(body)[0]["codes"]}
        # Pieces are counted from the end of a page that is not complete.
        pages, pieces = [0, 128, 190], [0, 32, 64, 96, 128, 190 - 32, 190]
        for code, down, across, group, scales, of_4096 in (
                ("u4/tok", range(191), [0, 64], 64, 1014, [4096, 1]),
                ("u4/ch", pages, range(65), 128, 8 * 64, [32, 4096]),
                ("u4/tok32", range(191), [0, 32, 64], 32, 2 * 1014, [4096, 128]),
                ("u4/ch32", pieces, range(65), 32, 32 * 64, [128, 4096]),
                ("u4/page", pages, [0, 64], 128 * 64, 8, [32, 1]),
                ("u4/layer", [0, 190], [0, 64], 1014 * 64, 1, [1, 1])):
            coded = found[code]
            self.assertEqual(coded["token_edges"], list(down), code)
            self.assertEqual(coded["channel_edges"], list(across), code)
            self.assertEqual((coded["head_group"], coded["head_scales"]), (group, scales), code)
            self.assertEqual(coded["scales_4096"], of_4096, code)
        self.assertEqual((found["f16"]["token_edges"], found["f16"]["head_scales"]), ([], 0))
        errors = [found[f"u4/{by}"]["head_relative_error"] for by in ("tok", "page", "layer")]
        self.assertEqual(errors, sorted(errors), "wider groups lose more")

    def test_plans_are_those_of_the_command(self):
        answer = self.server.json("/api/plan?model=Llama-3-8B&context=32768&users=8"
                                  "&memory=24000000000&weight_bits=4.5&kv=f16&kv=4bit")
        self.assertEqual(answer, report("plan", "Llama-3-8B", "-c", "32k", "--users", 8, "--memory",
                                        "24GB", "--kv", "f16", "--kv", "4bit"))
        self.assertEqual(answer["recipes"][0]["kv_bytes"], 32 << 30)  # the seed's figure

    def test_what_it_cannot_answer_it_refuses_with_the_reason(self):
        for path, part in (("/api/plan?model=none", "did you mean"),
                           ("/api/plan?model=/etc/passwd", "no model is known"),
                           ("/api/plan?model=Llama-3-8B&users=0", "users=0"),
                           ("/api/plan?model=Llama-3-8B&context=1e9", "context=1e9"),
                           ("/api/plan?model=Llama-3-8B&context=1&context=2", "given twice"),
                           ("/api/plan?model=Llama-3-8B&kv=u9", "not a preset"),
                           ("/api/plan?model=Llama-3-8B&weight_bits=nan", "weight_bits=nan"),
                           ("/api/slice?layer=-1", "layer=-1"),
                           ("/api/slice?layer=7", "the model has layers 0 to 0"),
                           ("/api/slice?head=1", "KV heads 0 to 0"),
                           ("/api/slice?side=Q", "side"),
                           ("/api/slice?tokens=9..2", "as in 64..87"),
                           ("/api/slice?tokens=0..99999999999999999999", "as in 64..87"),
                           ("/api/slice?tokens=1020..1030", "there are tokens 0 to 1023"),
                           ("/api/slice?channels=0..3", "multiples of 8"),
                           ("/api/slice?code=w4/ch", "calibration"),
                           ("/api/slice?code=", "recipe"),
                           ("/api/slice?exact=99999999999", "exact="),
                           ("/api/slice?code=lm4/layer", "uB alone"),
                           ("/api/slice?code=had:u4/layer", "uB alone"),
                           ("/api/slice?code=u9/layer", "not a width"),
                           ("/api/slice?code=lm4/page", "takes the group"),
                           ("/api/slice?source=model", "it is model, if there is one"),
                           ("/api/slice?source=", "it is model, if there is one"),
                           ("/api/slice?source=synthetic&source=model", "given twice"),
                           ("/api/slice?colour=red", "no parameter"),
                           ("/api/info?x=1", "no parameter")):
            answer, body = self.server.get(path)
            self.assertEqual(answer.status, 400, path)
            self.assertIn(part, json.loads(body)["error"], path)
        answer, body = self.server.get("/api/none")
        self.assertEqual((answer.status, "error" in json.loads(body)), (404, True))
        self.assertEqual(self.server.get("/../CMakeLists.txt")[0].status, 404)

    def test_other_pages_get_nothing(self):
        own = f"127.0.0.1:{self.server.port}"
        for headers, status in (({"Host": "evil.example"}, 403), ({"Host": "127.0.0.1:1"}, 403),
                                ({"Origin": "http://evil.example"}, 403), ({"Origin": "null"}, 403),
                                ({"Origin": f"http://{own}"}, 200),
                                ({"Host": f"localhost:{self.server.port}"}, 200)):
            for path in ("/", "/api/info"):
                self.assertEqual(self.server.get(path, **headers)[0].status, status, headers)
            if status == 403:
                for method in ("POST", "DELETE"):
                    answer, _ = self.server.ask(method, "/api/live?kv=4bit", **headers)
                    self.assertEqual(answer.status, 403, headers)

    def test_the_page_is_whole_and_asks_nobody_else(self):
        seen, todo, total = set(), ["/"], 0
        while todo:
            path = todo.pop()
            if path in seen:
                continue
            seen.add(path)
            answer, body = self.server.get(path)
            self.assertEqual(answer.status, 200, path)
            self.assertEqual(answer.getheader("Content-Security-Policy"),
                             "default-src 'self'; img-src 'self' data:")
            total += len(body)
            text = body.decode("utf-8")
            self.assertNotRegex(text, r"https?://(?!www\.w3\.org/)", path)
            links = re.findall(r'(?:src|href)="(?!data:)([^"#?]+)"', text) if path == "/" else \
                re.findall(r"from '\./([^']+)'", text)
            todo += ["/" + link.removeprefix("./").removeprefix("/") for link in links]
        self.assertTrue({"/app.js", "/style.css", "/recipes.js", "/api.js"} <= seen, seen)
        self.assertLess(total, MOST_BYTES)

    def test_without_a_model_nothing_is_measured(self):
        status, answer = self.server.measure("4bit")
        self.assertEqual((status, "without a model" in answer["error"]), (400, True))
        self.assertEqual(self.server.json("/api/live"),
                         {"running": None, "report": None, "error": None})

    def test_results_are_shown_as_they_were_written(self):
        self.assertEqual(self.server.json("/api/results"), {"kl": [], "speed": []})
        with tempfile.TemporaryDirectory() as folder:
            kl, speed = pathlib.Path(folder) / "kl.json", pathlib.Path(folder) / "speed.json"
            row = {"recipe": "4bit", "canonical": "k=w4/ch", "program": "shorthand", "bits": 4.25,
                   "true_bits": 5, "kld_mean": 0.001, "kld_mean_error": 1e-5, "kld_p999": 0.02,
                   "top1": 0.98}
            failed = row | {"recipe": "x", "kld_mean": None}
            kl.write_text(json.dumps({"model": "m", "context": 2048, "tokens": 7, "windows": 1,
                                      "rows": [row | {"ppl": 3}, failed]}), encoding="utf-8")
            point = {"engine": "shorthand", "recipe": "4bit", "depth": 0, "decode_ms_per_token": 2.5}
            speed.write_text(json.dumps({"model": "m", "threads": 1, "rows": [point]}))
            server = Server("--results", kl, "--results", speed)
            self.assertEqual(server.json("/api/results"), {
                "kl": [{"file": "kl.json", "model": "m", "context": 2048, "tokens": 7, "rows": [row]}],
                "speed": [{"file": "speed.json", "model": "m", "threads": 1, "rows": [point]}]})
            self.assertEqual(server.end(), 0)
            kl.write_text("{}")
            done = subprocess.run([SHORTHAND, "explore", "--results", kl], capture_output=True,
                                  text=True, timeout=20)
            self.assertEqual((done.returncode, "a model and rows" in done.stderr), (1, True))

    def test_a_port_in_use_is_refused(self):
        done = subprocess.run([SHORTHAND, "explore", "--no-browser", "--port",
                               str(self.server.port)], capture_output=True, text=True, timeout=20)
        self.assertEqual(done.returncode, 1)
        self.assertIn("is in use", done.stderr)


@unittest.skipUnless(STORIES.is_file(), "stories260Ktok512.gguf is not in the data folder")
class ModelTest(unittest.TestCase):
    def test_slices_are_those_of_inspect_bit_for_bit(self):
        server = Server("-m", STORIES, "-t", 1, "-n", 100)
        try:
            info = server.json("/api/info")
            model, synthetic = info["sources"]
            self.assertEqual((info["model"], model["name"], model["layers"]),
                             (str(STORIES), "model", 5))
            self.assertEqual(model["captured_tokens"], 100)
            self.assertEqual(len(model["heads"]), 5 * 4 * 2)
            self.assertEqual((synthetic["name"], len(synthetic["heads"])), ("synthetic", 2))
            place = "/api/slice?layer=0&tokens=64..79&channels=0..7"
            self.assertEqual(server.get(place)[1], server.get(f"{place}&source=model")[1])
            self.assertNotEqual(server.get(place)[1], server.get(f"{place}&source=synthetic")[1])
            for side in ("K", "V"):
                answer, body = server.get(f"/api/slice?layer=3&head=2&side={side}&tokens=40..63"
                                          "&channels=0..7&code=u2/tok&code=u3/ch&code=u4/layer"
                                          "&exact=4&sink=2")
                self.assertEqual(answer.status, 200)
                head, arrays = unpacked(body)
                expected = report("inspect", "slice", "-m", STORIES, "-t", 1, "-n", 100, "--layer",
                                  3, "--head", 2, "--side", side, "--tokens", "40..63",
                                  "--channels", "0..7", "--code", "u2/tok", "--code", "u3/ch",
                                  "--code", "u4/layer", "--exact", 4, "--sink", 2)
                self.assertEqual(arrays, [expected["values"]] +
                                 [coded["read"] for coded in expected["codes"]])
                for key in ("layer", "head", "side", "dim", "tokens", "channels", "exact", "sink"):
                    self.assertEqual(head[key], expected[key], key)
                for mine, other in zip(head["codes"], expected["codes"]):
                    self.assertEqual(mine, {key: other[key] for key in mine})
            contrast = next(h for h in model["heads"]
                            if (h["layer"], h["head"], h["side"]) == (3, 2, "K"))
            whole = report("inspect", "slice", "-m", STORIES, "-t", 1, "-n", 100, "--layer", 3,
                           "--head", 2, "--tokens", "0..7", "--channels", "0..7")
            self.assertEqual([contrast["token_error"], contrast["channel_error"]],
                             [coded["head_relative_error"] for coded in whole["codes"]])
            plan = server.json("/api/plan?" + urllib.parse.urlencode(
                {"model": STORIES, "context": 512, "kv": "f16"}))
            self.assertEqual(plan["recipes"][0]["kv_bytes"], 5 * 4 * 8 * 2 * 2 * 512)
        finally:
            self.assertEqual(server.end(), 0)

    def test_live_runs_have_the_figures_of_eval_bit_for_bit(self):
        server = Server("-m", STORIES, "-f", TEXT, "-t", 1, "-n", 100)
        try:
            rows = []
            for recipe in ("8bit", "4bit", "k=u2/ch,v=i3/tok"):
                self.assertEqual(server.measure(recipe)[0], 200)
                state = server.live()
                self.assertIsNone(state["error"])
                live = state["report"]
                whole = report("eval", *live["options"], "-t", 1, "--kv", recipe)
                rows.append({key: whole["rows"][0][key] for key in live["rows"][0]})
                self.assertEqual(live["rows"], rows)
                for key in ("model", "context", "tokens"):
                    self.assertEqual(live[key], whole[key])
            self.assertEqual(len(rows[0]), 9)
            server.measure("8bit")
            self.assertEqual(server.live()["report"]["rows"], rows)
        finally:
            self.assertEqual(server.end(), 0)

    def test_live_runs_say_what_is_wrong(self):
        server = Server("-m", STORIES, "-f", TEXT, "-t", 1, "-n", 100)
        try:
            for recipe, part in (("zzz", "not a preset"), ("", "a recipe starts with"),
                                 ("auto:99", "bits")):
                status, answer = server.measure(recipe)
                self.assertEqual((status, part in answer["error"]), (400, True), answer)
            self.assertEqual(server.ask("POST", "/api/live?kv=f16&kv=q8_0")[0].status, 400)
            self.assertEqual(server.ask("DELETE", "/api/live?kv=f16")[0].status, 400)

            server.measure("q8_0")
            state = server.live()
            self.assertEqual((state["report"], "a head of 8" in state["error"]), (None, True))
        finally:
            self.assertEqual(server.end(), 0)

    def test_live_runs_stop(self):
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as long:
            long.write(TEXT.read_text(encoding="utf-8") * 1000)  # a second to cut into tokens
            long.flush()
            server = Server("-m", STORIES, "-f", long.name, "-t", 1, "-n", 100)
            try:
                status, state = server.measure("2bit")
                self.assertEqual((status, state["running"]), (200, {"recipe": "2bit", "done": 0}))
                status, answer = server.measure("8bit")
                self.assertEqual((status, "2bit is being measured" in answer["error"]), (409, True))
                self.assertEqual(server.ask("DELETE", "/api/live")[0].status, 200)
                self.assertEqual(server.live(), {"running": None, "report": None, "error": None})
                self.assertEqual(server.measure("4bit")[0], 200)
            finally:
                self.assertEqual(server.end(), 0)

    def test_models_that_do_not_load_are_refused(self):
        done = subprocess.run([SHORTHAND, "explore", "-m", "no-model"], capture_output=True,
                              text=True, timeout=20)
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("no-model", done.stderr)


if __name__ == "__main__":
    SHORTHAND = sys.argv.pop(1)
    unittest.main()
