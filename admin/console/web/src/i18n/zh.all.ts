import { zh } from "./zh";
import { system } from "./zh.system";

export const texts = { ...zh, ...system };
