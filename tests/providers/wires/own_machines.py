import base64
from typing import Any

from models.work import JobKind
from sceneloom.providers.services import services
from sceneloom.testing.contract import CallEmulation, Refusal, Reply, Seen
from tests.providers.wires import BAD, PLAIN, RETIRED
from tests.providers.wires.openai import png

RUN = "7c1c9d0e"


def drawn(seen: Seen) -> Reply:
    made = png(seen.body["width"], seen.body["height"])
    return Reply(200, {"images": [base64.b64encode(made).decode()], "parameters": {}, "info": "{}"})


AUTOMATIC1111 = CallEmulation(
    service=services()["automatic1111"],
    kind=JobKind.IMAGE,
    model="loaded",
    submit="/sdapi/v1/txt2img",
    made=drawn,
    unusable=(Reply(200, {}), Reply(200, {"images": []}), Reply(200, {"images": ["!!"]})),
    refusals=(
        *PLAIN,
        Refusal(422, {"detail": [{"loc": ["body", "width"], "msg": "not a valid integer"}]}, BAD),
        Refusal(400, {"error": "HTTPException", "detail": "Checkpoint x not found"}, RETIRED),
    ),
)


def history(outputs: Any) -> dict[str, Any]:
    status = {"status_str": "success", "completed": True, "messages": []}
    return {RUN: {"status": status, "outputs": outputs}}


def node_error(details: str) -> dict[str, Any]:
    problem = {"type": "value_not_in_list", "message": "Value not in list", "details": details}
    return {
        "error": {"type": "prompt_outputs_failed_validation", "message": "failed", "details": ""},
        "node_errors": {"1": {"errors": [problem], "class_type": "X"}},
    }


COMFYUI = CallEmulation(
    service=services()["comfyui"],
    kind=JobKind.IMAGE,
    model="sd_xl_base_1.0.safetensors",
    submit="/prompt",
    made=lambda _: Reply(200, {"prompt_id": RUN, "number": 1, "node_errors": {}}),
    others={
        f"/history/{RUN}": lambda _: Reply(
            200, history({"7": {"images": [{"filename": "a.png", "subfolder": "", "type": "temp"}]}})
        ),
        "/view": lambda seen: Reply(200, png(768, 1344)) if seen.query["type"] == "temp" else Reply(404),
    },
    refusals=(
        *PLAIN,
        Refusal(400, node_error("ckpt_name: 'x' not in ['y']"), RETIRED),
        Refusal(400, node_error("sampler_name: 'x' not in ['y']"), BAD),
    ),
)
