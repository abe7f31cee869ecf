"""What users are told, from a status or an error code alone, in their language."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, TypeAlias

from models.errors import ErrorCode
from models.lifecycle import JobStatus, ProjectState, SceneStatus, SubmitState

Subject: TypeAlias = ProjectState | SceneStatus | JobStatus | SubmitState | ErrorCode

USUAL_LANGUAGE: Final = "en"


def message_for(subject: Subject, language: str) -> str:
    """Return what a reader of *language* (BCP 47) is told of *subject*; English where there is no other."""
    spoken = language.replace("_", "-").split("-")[0].lower()
    messages = _MESSAGES[type(subject), subject.value]
    return messages.get(spoken, messages[USUAL_LANGUAGE])


def _told(subject: Subject, *, en: str, ru: str, fa: str) -> tuple[tuple[type, str], Mapping[str, str]]:
    # A project and a scene may both be `Failed`, and equal words are equal StrEnums: hence the type.
    return (type(subject), subject.value), MappingProxyType({"en": en, "ru": ru, "fa": fa})


_MESSAGES: Final = dict(
    [
        _told(
            ProjectState.CREATED,
            en="We have your video request and will start on it in a moment.",
            ru="Мы получили заявку на видео и сейчас за неё возьмёмся.",
            fa="درخواست ویدیوی شما به دست ما رسید و به‌زودی کار را شروع می‌کنیم.",
        ),
        _told(
            ProjectState.GENERATING_SCENES,
            en="Your scenes are being made. You can close this window: we go on.",
            ru="Сцены создаются. Окно можно закрыть: работа продолжится без вас.",
            fa="صحنه‌ها در حال ساخته شدن هستند. می‌توانید این پنجره را ببندید؛ کار ادامه پیدا می‌کند.",
        ),
        _told(
            ProjectState.RENDERING,
            en="All scenes are ready. We are putting your video together.",
            ru="Все сцены готовы. Собираем видео.",
            fa="همهٔ صحنه‌ها آماده‌اند. داریم ویدیو را سر هم می‌کنیم.",
        ),
        _told(
            ProjectState.COMPLETED,
            en="Your video is ready.",
            ru="Ваше видео готово.",
            fa="ویدیوی شما آماده است.",
        ),
        _told(
            ProjectState.FAILED,
            en="Your video could not be finished. Everything that is ready is kept: try again to "
            "make only the rest.",
            ru="Закончить видео не удалось. Всё, что уже готово, сохранено: попробуйте ещё раз, и мы "
            "сделаем только недостающее.",
            fa="ساخت ویدیو به پایان نرسید. هر چه آماده شده نگه داشته می‌شود؛ دوباره تلاش کنید تا فقط "
            "بقیه ساخته شود.",
        ),
        _told(
            ProjectState.CANCELLED,
            en="Your video was cancelled. Nothing more will be made.",
            ru="Видео отменено. Больше ничего создаваться не будет.",
            fa="ویدیو لغو شد. دیگر چیزی ساخته نمی‌شود.",
        ),
        _told(
            SceneStatus.PENDING,
            en="This scene is waiting for its turn.",
            ru="Сцена ждёт своей очереди.",
            fa="این صحنه در نوبت است.",
        ),
        _told(
            SceneStatus.IN_PROGRESS,
            en="This scene is being made.",
            ru="Сцена создаётся.",
            fa="این صحنه در حال ساخته شدن است.",
        ),
        _told(
            SceneStatus.COMPLETED,
            en="This scene is ready.",
            ru="Сцена готова.",
            fa="این صحنه آماده است.",
        ),
        _told(
            SceneStatus.FAILED,
            en="This scene could not be made. You can change it and try again.",
            ru="Создать сцену не удалось. Её можно изменить и попробовать ещё раз.",
            fa="این صحنه ساخته نشد. می‌توانید آن را تغییر دهید و دوباره تلاش کنید.",
        ),
        _told(
            JobStatus.QUEUED,
            en="Waiting for a free place.",
            ru="Ждём свободного места.",
            fa="در انتظار جای خالی هستیم.",
        ),
        _told(
            JobStatus.VALIDATING,
            en="Checking what you asked for.",
            ru="Проверяем вашу заявку.",
            fa="داریم درخواست شما را بررسی می‌کنیم.",
        ),
        _told(
            JobStatus.RUNNING,
            en="Being made right now.",
            ru="Создаётся прямо сейчас.",
            fa="همین حالا در حال ساخته شدن است.",
        ),
        _told(
            JobStatus.DELAYED,
            en="This takes longer than usual. We keep looking, and you need not do anything.",
            ru="Это занимает больше времени, чем обычно. Мы следим за работой, от вас ничего не нужно.",
            fa="این کار بیش از حد معمول طول کشیده است. ما همچنان پیگیر هستیم و لازم نیست کاری بکنید.",
        ),
        _told(
            JobStatus.SUCCEEDED,
            en="Done and safely stored.",
            ru="Готово и надёжно сохранено.",
            fa="انجام شد و در جای امنی ذخیره شد.",
        ),
        _told(
            JobStatus.FAILED,
            en="This part could not be made. You can try again.",
            ru="Эту часть создать не удалось. Можно попробовать ещё раз.",
            fa="این بخش ساخته نشد. می‌توانید دوباره تلاش کنید.",
        ),
        _told(
            JobStatus.CANCELLED,
            en="This part was cancelled.",
            ru="Эта часть отменена.",
            fa="این بخش لغو شد.",
        ),
        _told(
            SubmitState.INTENDED,
            en="Your order is on its way.",
            ru="Ваш заказ отправляется.",
            fa="سفارش شما در راه است.",
        ),
        _told(
            SubmitState.ACCEPTED,
            en="Your order has arrived and is being worked on.",
            ru="Ваш заказ принят, над ним работают.",
            fa="سفارش شما رسید و روی آن کار می‌شود.",
        ),
        _told(
            SubmitState.UNKNOWN,
            en="We are finding out whether your order arrived. Until we know, we do not send it again, "
            "so that you do not pay twice.",
            ru="Мы выясняем, дошёл ли ваш заказ. Пока это неизвестно, мы не отправляем его снова, чтобы "
            "вы не заплатили дважды.",
            fa="داریم بررسی می‌کنیم که سفارش شما رسیده است یا نه. تا معلوم نشود دوباره فرستاده نمی‌شود تا "
            "دو بار هزینه ندهید.",
        ),
        _told(
            SubmitState.NEEDS_CONFIRMATION,
            en="We could not find out whether this order arrived. So that you do not pay twice, we "
            "ask you before we send it again.",
            ru="Нам не удалось выяснить, дошёл ли заказ. Чтобы вы не заплатили дважды, мы спросим "
            "вас, прежде чем отправить его снова.",
            fa="معلوم نشد که سفارش به مقصد رسیده است یا نه. برای اینکه دو بار هزینه ندهید، پیش از "
            "فرستادن دوباره از شما می‌پرسیم.",
        ),
        _told(
            ErrorCode.PROVIDER_TIMEOUT,
            en="This took far too long, so we stopped waiting. Please try again later.",
            ru="Ответа не было слишком долго, и мы перестали ждать. Попробуйте, пожалуйста, позже.",
            fa="این کار بیش از اندازه طول کشید و دیگر منتظر نماندیم. لطفاً بعداً دوباره تلاش کنید.",
        ),
        _told(
            ErrorCode.MODERATION_REJECTED,
            en="The description was turned down by the content rules. Please put it in other words "
            "and try again.",
            ru="Описание не прошло проверку содержания. Опишите сцену другими словами и попробуйте ещё раз.",
            fa="این توضیح با قواعد محتوا سازگار نبود. لطفاً آن را با واژه‌های دیگری بنویسید و دوباره "
            "تلاش کنید.",
        ),
        _told(
            ErrorCode.ASSET_FETCH_FAILED,
            en="A file could not be fetched. If you gave the address of a picture, check that it "
            "opens, then try again.",
            ru="Не удалось загрузить файл. Если вы дали ссылку на картинку, проверьте, открывается "
            "ли она, и попробуйте ещё раз.",
            fa="یکی از فایل‌ها دریافت نشد. اگر نشانی تصویری را داده‌اید، ببینید باز می‌شود یا نه و "
            "دوباره تلاش کنید.",
        ),
        _told(
            ErrorCode.PROVIDER_RATE_LIMITED,
            en="Too many requests are being made at the moment. Please try again in a few minutes.",
            ru="Сейчас слишком много запросов. Попробуйте ещё раз через несколько минут.",
            fa="در حال حاضر درخواست‌ها خیلی زیاد است. لطفاً چند دقیقهٔ دیگر دوباره تلاش کنید.",
        ),
        _told(
            ErrorCode.OUTPUT_MISSING,
            en="The work was reported as done, but what came back was empty or damaged. Please try again.",
            ru="Работа отмечена как выполненная, но результат оказался пустым или испорченным. "
            "Попробуйте ещё раз.",
            fa="گفته شد که کار تمام شده، اما نتیجه خالی یا خراب بود. لطفاً دوباره تلاش کنید.",
        ),
        _told(
            ErrorCode.INVALID_REQUEST,
            en="Something in this scene cannot be made as it is written. Please check its text and settings.",
            ru="Сцену нельзя создать так, как она описана. Проверьте, пожалуйста, её текст и настройки.",
            fa="این صحنه به شکلی که نوشته شده ساختنی نیست. لطفاً متن و تنظیمات آن را بررسی کنید.",
        ),
        _told(
            ErrorCode.PROVIDER_QUOTA_EXHAUSTED,
            en="The service that makes this has no allowance left. Please tell the people who run "
            "it, or choose another service.",
            ru="У сервиса, который это создаёт, исчерпан лимит. Сообщите тем, кто за него отвечает, "
            "или выберите другой сервис.",
            fa="سهمیهٔ سرویسی که این بخش را می‌سازد تمام شده است. لطفاً به مسئولان آن خبر دهید یا "
            "سرویس دیگری انتخاب کنید.",
        ),
        _told(
            ErrorCode.PROVIDER_AUTH,
            en="The service that makes this did not let us in. You did nothing wrong: please tell "
            "the people who run it.",
            ru="Сервис, который это создаёт, не пустил нас. Вы ни в чём не ошиблись: сообщите, "
            "пожалуйста, тем, кто за него отвечает.",
            fa="سرویسی که این بخش را می‌سازد به ما اجازهٔ ورود نداد. اشتباه از شما نیست؛ لطفاً به "
            "مسئولان آن خبر دهید.",
        ),
        _told(
            ErrorCode.PROVIDER_BAD_REQUEST,
            en="The service that makes this did not accept the scene's settings. Try another length, "
            "shape or description.",
            ru="Сервис, который это создаёт, не принял настройки сцены. Попробуйте другую "
            "длительность, формат или описание.",
            fa="سرویسی که این بخش را می‌سازد تنظیمات صحنه را نپذیرفت. مدت، اندازه یا توضیح دیگری را "
            "امتحان کنید.",
        ),
        _told(
            ErrorCode.PROVIDER_MODEL_RETIRED,
            en="The service that was chosen for this no longer exists. Please choose another one.",
            ru="Выбранный сервис больше не работает. Выберите, пожалуйста, другой.",
            fa="سرویسی که انتخاب شده بود دیگر وجود ندارد. لطفاً سرویس دیگری انتخاب کنید.",
        ),
        _told(
            ErrorCode.PROVIDER_UNAVAILABLE,
            en="The service that makes this cannot be reached right now. Please try again a little later.",
            ru="Сервис, который это создаёт, сейчас недоступен. Попробуйте немного позже.",
            fa="سرویسی که این بخش را می‌سازد فعلاً در دسترس نیست. لطفاً کمی بعد دوباره تلاش کنید.",
        ),
        _told(
            ErrorCode.PROVIDER_CANCELLED,
            en="The work was stopped before it was done. You can start it again.",
            ru="Работа была остановлена до завершения. Её можно начать снова.",
            fa="کار پیش از پایان متوقف شد. می‌توانید آن را دوباره شروع کنید.",
        ),
        _told(
            ErrorCode.SUBMIT_UNKNOWN,
            en="We could not find out whether this order arrived, so we did not send it again: you "
            "might have paid twice. You can start it anew.",
            ru="Нам не удалось выяснить, дошёл ли заказ, поэтому мы не отправили его снова: вы могли "
            "бы заплатить дважды. Его можно начать заново.",
            fa="معلوم نشد که سفارش به مقصد رسیده است یا نه، برای همین دوباره فرستاده نشد تا دو بار "
            "هزینه ندهید. می‌توانید آن را از نو شروع کنید.",
        ),
        _told(
            ErrorCode.BUDGET_EXCEEDED,
            en="This would cost more than the limit you set. Raise the limit, or ask for less.",
            ru="Это обойдётся дороже установленного вами предела. Увеличьте предел или попросите меньше.",
            fa="هزینهٔ این کار از سقفی که تعیین کرده‌اید بیشتر است. سقف را بالا ببرید یا درخواست را "
            "کوچک‌تر کنید.",
        ),
        _told(
            ErrorCode.INSUFFICIENT_CREDITS,
            en="You do not have enough credits for this. Add some, then try again.",
            ru="На вашем счёте не хватает средств. Пополните его и попробуйте ещё раз.",
            fa="اعتبار شما برای این کار کافی نیست. اعتبار خود را افزایش دهید و دوباره تلاش کنید.",
        ),
    ]
)
